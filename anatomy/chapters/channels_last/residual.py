"""A residual network of bottleneck blocks as ResNet-50 v1.5 is built, the stride in its 3 x 3
convolutions. Source: He et al. 2016, arXiv:1512.03385, table 1."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

CLASSES = 1000


class Bottleneck(nn.Module):
    """x + three convolutions of it, each followed by a batch norm: 1 x 1, 3 x 3, 1 x 1."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.narrow, self.norm1 = nn.Conv2d(before, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.widen, self.norm3 = nn.Conv2d(width, after, 1, bias=False), nn.BatchNorm2d(after)
        self.beside = nn.Identity()
        if before != after or stride > 1:
            self.beside = nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) to (B, 4 width, H / stride, W / stride)."""
        y = F.relu(self.norm1(self.narrow(x)))
        y = F.relu(self.norm2(self.conv(y)))
        return F.relu(self.norm3(self.widen(y)) + self.beside(x))


def network(width: int, blocks: tuple[int, ...], images: Tensor) -> nn.Sequential:
    """A network with the same weights each time, where `images` (B, 3, H, W) in float32 are; its
    batch norms have their statistics. The first convolution gives `width` channels; each stage has
    so many `blocks`, doubles the channels, and halves the sides."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = width
    with torch.random.fork_rng(devices=[]):  # the caller's own random numbers stay as they were
        torch.manual_seed(0)
        for stage, count in enumerate(blocks):
            for block in range(count):
                stride = 2 if stage and not block else 1
                layers.append(Bottleneck(channels, width * 2**stage, stride))
                channels = 4 * width * 2**stage
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
        model = nn.Sequential(*layers)
        norms = [each for each in model.modules() if isinstance(each, nn.BatchNorm2d)]
        for each in model.modules():
            if isinstance(each, nn.Conv2d):
                nn.init.kaiming_normal_(each.weight, mode="fan_out", nonlinearity="relu")
    model.to(images.device)
    for norm in norms:
        norm.momentum = 1.0  # one batch sets the running statistics
    with torch.no_grad():
        model.train()(images)
    for norm in norms:
        norm.momentum = 0.1
    return model

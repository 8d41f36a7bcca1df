"""channels_last: for which convolutions the memory format pays, alone and in a whole network."""

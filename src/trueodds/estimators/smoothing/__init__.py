"""How is a curve drawn through outcomes? Kernels, bandwidths, local and isotonic fits that errors are read from."""

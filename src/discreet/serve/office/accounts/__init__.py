"""Who asks: nobody in particular, the holder of a token, or whom a proxy vouches for."""

"""Fair comparison of perturbation methods by expected frequencies (Langsrud & Lupp 2021)."""

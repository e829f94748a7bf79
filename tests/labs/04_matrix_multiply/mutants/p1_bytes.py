# problem: strides
# loses: strides-plain, strides-turned
# reason: wrong for 3 of 3

prediction = {
    "A · B, warp of 32 × 1": 160,
    "A · B, warp of 16 × 2": 128,
    "A · B, warp of 4 × 8": 288,
    "Aᵀ · B, warp of 32 × 1": 160,
    "Aᵀ · B, warp of 8 × 4": 64,
    "A · Bᵀ, warp of 8 × 4": 384,
}

# problem: strides
# loses: strides-plain
# reason: wrong for 2 of 3: 'A · B, warp of 16 × 2', 'A · B, warp of 4 × 8'

prediction = {
    "A · B, warp of 32 × 1": 5,
    "A · B, warp of 16 × 2": 3,
    "A · B, warp of 4 × 8": 2,
    "Aᵀ · B, warp of 32 × 1": 5,
    "Aᵀ · B, warp of 8 × 4": 2,
    "A · Bᵀ, warp of 8 × 4": 12,
}

# problem: strides
# loses: strides-plain, strides-turned
# reason: has no number yet for 'A · B, warp of 32 × 1'

prediction = {
    "A · B, warp of 32 × 1": None,
    "A · B, warp of 16 × 2": None,
    "A · B, warp of 4 × 8": None,
    "Aᵀ · B, warp of 32 × 1": None,
    "Aᵀ · B, warp of 8 × 4": None,
    "A · Bᵀ, warp of 8 × 4": None,
}

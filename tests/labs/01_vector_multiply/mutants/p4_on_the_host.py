# problem: multiply-float4
# loses: float4-right, float4-traffic
# reason: runs on the host


def multiply_float4(a, b, c, n):
    c[:n] = a[:n] * b[:n]

#pragma once

#include "kernels/common/gemm_product.h"
#include "kernels/cuda/matmul/matmul_tiles.h"

namespace lockstep::cuda {

/// Queues a product on the stream of the running kernel: by cuBLASLt if it supports it, else by
/// `multiply_by_tiles`. Empty results queue nothing. The result must not overlap a or b. Throws
/// DTypeError for bool, DeviceError.
void gemm(const Product& product);

/// Queues a product by our own kernel, which supports every numeric dtype and k = 0 (a sum of 0).
void multiply_by_tiles(const Product& product);

/// Arguments of that kernel.
MatmulTiles tiles_of(const Product& product);

}  // namespace lockstep::cuda

#pragma once

#include "kernels/common/gemm_product.h"
#include "kernels/cuda/matmul/matmul_tiles.h"

namespace lockstep::cuda {

/// Queues a product on the stream of the running kernel: by cuBLASLt where it can, else by
/// `multiply_by_tiles`. Empty results queue nothing. The result overlaps neither factor.
/// Throws DTypeError for bool, DeviceError.
void gemm(const Product& product);

/// The same by a kernel of ours: any numbers, also integers and k = 0, whose sum is 0.
void multiply_by_tiles(const Product& product);

/// What that kernel gets.
MatmulTiles tiles_of(const Product& product);

}  // namespace lockstep::cuda

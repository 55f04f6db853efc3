#include "kernels/cuda/matmul/matmul.h"

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/device/kernel_scope.h"
#include "core/dispatch/kernel.h"
#include "kernels/cuda/kernel_tables.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matmul/matmul.fatbin.h"
#include "kernels/cuda/matmul/matmul_lt.h"
#include "kernels/cuda/workspace.h"

namespace lockstep::cuda {

namespace {

const DTypeKernels kTiles(kImage, "matmul",
                          {DType::kF64, DType::kF32, DType::kBF16, DType::kF16, DType::kI64,
                           DType::kI32, DType::kI16, DType::kI8, DType::kU8});

const DTypeKernels kWideTiles(kImage, "matmul", {DType::kBF16, DType::kF16}, "_wide");

MatmulOperand operand(const Factor& factor) {
  return {factor.data, factor.transposed ? 1 : factor.ld, factor.transposed ? factor.ld : 1,
          factor.batch_stride};
}

/// True if the addend contributes: it is given, and beta is not 0 in the accumulation type.
bool adds(const Product& p) {
  if (p.addend.data == nullptr) return false;
  if (p.dtype == DType::kF64) return p.beta.to_double() != 0;
  return is_floating(p.dtype) ? p.beta.to<float>() != 0 : p.beta.to_int() != 0;
}

/// Computes into temporary memory if the result aliases a factor (`mm(a, b, out=a)`).
void compute(Product product, const Out& out, const In& a, const In& b) {
  join_rows(product);
  if (out.address != a.address && out.address != b.address) {
    gemm(product);
    return;
  }
  const size_t bytes = static_cast<size_t>(out.numel) * size_of(out.dtype);
  const Workspace fresh(bytes);
  product.result = fresh.data();
  gemm(product);
  const Stream stream = kernel_stream();
  require_runtime(stream.device).copy(stream, out.address, fresh.data(), bytes, Transfer::kWithin);
}

void mm(const Out& out, const In& self, const In& mat2) {
  if (out.numel != 0) compute(product_of(out, self, mat2), out, self, mat2);
}

void addmm(const Out& out, const In& self, const In& mat1, const In& mat2, Scalar beta,
           Scalar alpha) {
  if (out.numel == 0) return;
  compute(product_of(out, self, mat1, mat2, beta, alpha), out, mat1, mat2);
}

}  // namespace

MatmulTiles tiles_of(const Product& p) {
  MatmulTiles tiles;
  tiles.a = operand(p.a);
  tiles.b = operand(p.b);
  tiles.addend = {p.addend.data, p.addend.row, p.addend.column, p.addend.batch};
  tiles.result = p.result;
  tiles.ld = p.ld;
  tiles.batch_stride = p.batch_stride;
  tiles.batch = p.batch;
  tiles.m = p.m;
  tiles.n = p.n;
  tiles.k = p.k;
  tiles.adds = adds(p);
  if (is_floating(p.dtype)) {
    tiles.alpha = p.alpha.to_double();
    tiles.beta = p.beta.to_double();
  } else {
    tiles.integer_alpha = p.alpha.to_int();
    tiles.integer_beta = p.beta.to_int();
  }
  return tiles;
}

void multiply_by_tiles(const Product& product) {
  if (product.batch <= 0 || product.m <= 0 || product.n <= 0) return;
  LS_CHECK(product.dtype != DType::kBool, DTypeError,
           "[gemm] matrices of bool have no product: expected numbers. Cast with to(dtype).");
  const MatmulTiles tiles = tiles_of(product);
  launch((product.wide ? kWideTiles : kTiles)[product.dtype],
         {.blocks = {tiles.blocks(), 1, 1}, .threads = MatmulTiles::kThreads}, tiles);
}

void gemm(const Product& product) {
  if (product.batch <= 0 || product.m <= 0 || product.n <= 0) return;
  if (!multiply_by_cublas_lt(product)) multiply_by_tiles(product);
}

LS_KERNEL(CUDA, "mm", mm, Strides::kMatrix);
LS_KERNEL(CUDA, "bmm", mm, Strides::kMatrix);
LS_KERNEL(CUDA, "addmm", addmm, Strides::kMatrix);
LS_KERNEL(CUDA, "baddbmm", addmm, Strides::kMatrix);

}  // namespace lockstep::cuda

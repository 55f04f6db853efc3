#include <cstring>

#include "core/dispatch/kernel.h"
#include "kernels/cpu/matmul/gemm.h"

namespace lockstep::cpu {

namespace {

/// Computes into temporary memory if the result aliases a factor (`mm(a, b, out=a)`).
void compute(Product product, const Out& out, const In& a, const In& b) {
  join_rows(product);
  if (out.address != a.address && out.address != b.address) {
    gemm(product);
    return;
  }
  const Tensor fresh = empty_tensor(out.sizes(), out.dtype);
  product.result = fresh.data();
  gemm(product);
  std::memcpy(out.address, fresh.data(), fresh.nbytes());
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

LS_KERNEL(CPU, "mm", mm, Strides::kMatrix);
LS_KERNEL(CPU, "bmm", mm, Strides::kMatrix);
LS_KERNEL(CPU, "addmm", addmm, Strides::kMatrix);
LS_KERNEL(CPU, "baddbmm", addmm, Strides::kMatrix);

}  // namespace lockstep::cpu

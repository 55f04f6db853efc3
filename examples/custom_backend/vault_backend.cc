// The backend: a name, memory, three kernels, and the cpu for everything else. Loading the library
// registers it.

#include <lockstep/lockstep.h>

#include "vault_allocator.h"

using namespace lockstep;

namespace vault {
namespace {

std::atomic<int64_t> g_kernel_calls{0};

float* elements(const TensorArg& tensor) {
  return static_cast<float*>(VaultAllocator::local(tensor.address));
}

void begin_kernel(const char* op, std::initializer_list<TensorArg> tensors) {
  ++g_kernel_calls;
  for (const TensorArg& tensor : tensors) {
    if (tensor.dtype == DType::kF32) continue;
    throw DTypeError(std::string("[") + op + "] the vault computes in float32, got " +
                     to_string(tensor.dtype) + ". Cast with to(dtype).");
  }
}

/// Maps rows of the result to the elements of an argument that broadcasts to it.
class Rows {
 public:
  Rows(const In& in, const Out& out)
      : sizes_(to_dims(out.sizes())),
        strides_(broadcast_strides(in.sizes(), in.strides(), out.sizes())) {}

  int64_t step() const { return strides_.empty() ? 0 : strides_.back(); }
  int64_t first(int64_t row) const {
    int64_t place = 0;
    for (size_t i = sizes_.size(); i-- > 1;) {
      place += row % sizes_[i - 1] * strides_[i - 1];
      row /= sizes_[i - 1];
    }
    return place;
  }

 private:
  Dims sizes_;
  Dims strides_;
};

/// out[i] = f(a[i], b[i]). `out` may be an argument as well: it is written after they are read.
template <class F>
void elementwise(const Out& out, const In& a, const In& b, const F& f) {
  const Rows a_rows(a, out);
  const Rows b_rows(b, out);
  const int64_t length = out.rank == 0 ? 1 : out.size(-1);
  for (int64_t row = 0; row * length < out.numel; ++row) {
    float* to = elements(out) + row * length;
    const float* x = elements(a) + a_rows.first(row);
    const float* y = elements(b) + b_rows.first(row);
    for (int64_t i = 0; i < length; ++i) to[i] = f(x[i * a_rows.step()], y[i * b_rows.step()]);
  }
}

void add(const Out& out, const In& self, const In& other, Scalar alpha) {
  begin_kernel("add", {out, self, other});
  const float scale = alpha.to<float>();
  elementwise(out, self, other, [scale](float x, float y) { return x + scale * y; });
}

void mul(const Out& out, const In& self, const In& other) {
  begin_kernel("mul", {out, self, other});
  elementwise(out, self, other, [](float x, float y) { return x * y; });
}

void mm(const Out& out, const In& self, const In& mat2) {
  begin_kernel("mm", {out, self, mat2});
  for (int64_t i = 0; i < out.size(0); ++i) {
    for (int64_t j = 0; j < out.size(1); ++j) {
      const float* x = elements(self) + i * self.stride(0);
      const float* y = elements(mat2) + j * mat2.stride(1);
      float sum = 0;
      for (int64_t k = 0; k < self.size(1); ++k) {
        sum += x[k * self.stride(1)] * y[k * mat2.stride(0)];
      }
      elements(out)[i * out.stride(0) + j * out.stride(1)] = sum;
    }
  }
}

// Results and arguments come row-major, and broadcast to the result's shape.
LS_KERNEL(Private1, "add.Tensor", add, Strides::kContiguous);
LS_KERNEL(Private1, "mul.Tensor", mul, Strides::kContiguous);
// Accepts any strides, so a transposed matrix is read without a copy.
LS_KERNEL(Private1, "mm", mm, Strides::kAny);

const Registration kFallback = register_cpu_fallback(Key::kPrivate1);

/// Tensors may outlive the library's own statics, so the allocator is never destroyed.
[[maybe_unused]] const bool kReady = [] {
  set_allocator(DeviceType::kPrivate1, new VaultAllocator());
  name_device_type(DeviceType::kPrivate1, "vault");
  return true;
}();

}  // namespace
}  // namespace vault

/// Calls of the backend's own kernels so far.
extern "C" int64_t vault_kernel_calls() { return vault::g_kernel_calls; }

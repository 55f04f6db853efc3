// A tensor is memory plus strides. permute changes the strides, not the memory.

#include <lockstep/lockstep.h>

#include <cstdio>

using namespace lockstep;

namespace {

void show(const char* name, const Tensor& x) {
  std::printf("%-22s sizes %-10s strides %-11s %s\n", name, x.shape().c_str(),
              to_string(x.strides()).c_str(), x.is_contiguous() ? "contiguous" : "not contiguous");
}

}  // namespace

int main() {
  const Tensor x = arange(24).view({2, 3, 4});
  const Tensor y = x.permute({2, 0, 1});  // y[i][j][k] is x[j][k][i]
  show("x", x);
  show("x.permute({2, 0, 1})", y);
  std::printf("the same memory: %s\n", x.storage() == y.storage() ? "yes" : "no");

  // The element at (3, 1, 2) is 3 * 1 + 1 * 12 + 2 * 4 elements after the first.
  const int64_t* first = y.data<int64_t>();
  const int64_t at = 3 * y.stride(0) + 1 * y.stride(1) + 2 * y.stride(2);
  std::printf("y[3][1][2] is %lld, %lld elements in\n", static_cast<long long>(first[at]),
              static_cast<long long>(at));

  // Rows of y are not adjacent in memory, so no strides describe it as one row.
  try {
    (void)y.view({24});
  } catch (const ShapeError& error) {
    std::printf("view: %s\n", error.what());
  }
  const Tensor z = y.contiguous();
  show("contiguous()", z);
  std::printf("the same memory: %s\n", y.storage() == z.storage() ? "yes" : "no");
}

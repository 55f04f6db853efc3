// The generic elementwise loop: for all strides, dtypes and thread counts, each element is the
// functor applied to the operands' elements.

#include <gtest/gtest.h>

#include "core/ops/factory/copy.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "tests/kernels/tensor_values.h"

namespace lockstep {
namespace {

/// Makes a tensor with the same elements and other strides.
struct Layout {
  const char* name;
  Tensor (*make)(const Tensor&);
};

Tensor reversed_dimensions(const Tensor& tensor) {
  Dims order;
  for (int64_t i = tensor.dim() - 1; i >= 0; --i) order.push_back(i);
  return tensor.permute(order);
}

const Layout kLayouts[] = {
    {"row-major", [](const Tensor& t) { return t; }},
    {"column-major",
     [](const Tensor& t) { return reversed_dimensions(reversed_dimensions(t).contiguous()); }},
    {"every third column",
     [](const Tensor& t) {
       Dims wide = to_dims(t.sizes());
       wide.back() *= 3;
       const Tensor space = zeros(wide, t.options()).slice(-1, 1, std::nullopt, 3);
       return Tensor(space.copy_(t));
     }},
    {"middle rows",
     [](const Tensor& t) {
       Dims tall = to_dims(t.sizes());
       tall[0] += 2;
       const Tensor space = zeros(tall, t.options()).slice(0, 1, tall[0] - 1);
       return Tensor(space.copy_(t));
     }},
};

/// Reference: a * 2 + b, element by element.
std::vector<double> expected(const Tensor& a, const Tensor& b) {
  std::vector<double> x = values(a);
  const std::vector<double> y = values(b.expand(a.sizes()));
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(std::fma(2.0F, static_cast<float>(y[i]), static_cast<float>(x[i])));
  }
  return x;
}

TEST(StridedLoop, AnyLayoutOfAnyOperandGivesTheSameElements) {
  const std::vector<Dims> shapes = {{7},      {3, 5},       {700, 3},   {2, 900},
                                    {33, 67}, {4, 3, 2, 5}, {130, 1030}};
  for (const Dims& shape : shapes) {
    SCOPED_TRACE(to_string(shape));
    const Tensor a = random_tensor(shape);
    const Tensor b = random_tensor(shape, DType::kF32, 2);
    const std::vector<double> wanted = expected(a, b);
    for (const Layout& of_a : kLayouts) {
      for (const Layout& of_b : kLayouts) {
        for (const Layout& of_out : kLayouts) {
          SCOPED_TRACE(std::string(of_a.name) + ", " + of_b.name + " to " + of_out.name);
          const Tensor out = of_out.make(zeros(shape));
          add_out(out, of_a.make(a), of_b.make(b), 2);
          ASSERT_EQ(values(out), wanted);
        }
      }
    }
  }
}

TEST(StridedLoop, BroadcastsInEveryDimension) {
  const Tensor a = random_tensor({6, 5, 40});
  for (const Dims& shape : {Dims{}, Dims{40}, Dims{5, 1}, Dims{6, 1, 1}, Dims{1, 5, 40},
                            Dims{6, 1, 40}, Dims{1, 1, 1}}) {
    const Tensor b = random_tensor(shape, DType::kF32, 3);
    EXPECT_EQ(values(add(a, b, 2)), expected(a, b)) << to_string(shape);
    const Tensor transposed = kLayouts[1].make(a);
    EXPECT_EQ(values(add(transposed, b, 2)), expected(a, b)) << to_string(shape);
  }
}

TEST(StridedLoop, ConvertsEveryDType) {
  const DType dtypes[] = {DType::kU8,  DType::kI8,   DType::kI16, DType::kI32, DType::kI64,
                          DType::kF16, DType::kBF16, DType::kF32, DType::kF64, DType::kBool};
  const Tensor a = arange(1000).view({20, 50});
  const Tensor small = where(lt(a, 100), a, zeros_like(a));
  for (const DType left : dtypes) {
    for (const DType right : dtypes) {
      const Tensor x = small.to(left);
      const Tensor y = small.to(right);
      const std::vector<double> p = values(x), q = values(y);
      const Tensor sum = add(x, y);
      for (size_t i = 0; i < p.size(); ++i) {
        const bool flag = sum.dtype() == DType::kBool;
        const double wanted = flag ? (p[i] + q[i] != 0 ? 1 : 0) : p[i] + q[i];
        const double got = values(sum.slice(0, 0, 20))[i];
        if (sum.dtype() == DType::kI8) {
          ASSERT_EQ(got, static_cast<int8_t>(static_cast<int>(wanted)));
        } else if (sum.dtype() == DType::kBF16) {
          ASSERT_NEAR(got, wanted, 0.5);
        } else {
          ASSERT_EQ(got, wanted) << name(left) << " + " << name(right) << " at " << i;
        }
        if (i > 120) break;
      }
    }
  }
}

TEST(StridedLoop, ColumnMajorOperandsMayDifferInSize) {
  const Tensor flags = gt(random_tensor({150, 530}), 0);
  const Tensor narrow = random_tensor({150, 530}, DType::kBF16, 2);
  const Tensor wide = random_tensor({150, 530}, DType::kF64, 3);
  const auto turned = kLayouts[1].make;
  EXPECT_EQ(values(add(turned(narrow), turned(wide))), values(add(narrow, wide)));
  EXPECT_EQ(values(add(turned(narrow), narrow)), values(add(narrow, narrow)));
  EXPECT_EQ(values(where(turned(flags), turned(narrow), turned(wide))),
            values(where(flags, narrow, wide)));
}

TEST(StridedLoop, InPlaceOnAnyLayoutEqualsFunctional) {
  const Tensor a = random_tensor({130, 70});
  const Tensor b = random_tensor({70}, DType::kF32, 2);
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const std::vector<double> wanted = values(mul(a.to(dtype), b.to(dtype)));
    for (const Layout& layout : kLayouts) {
      const Tensor x = layout.make(clone(a.to(dtype)));
      x.mul_(b.to(dtype));
      EXPECT_EQ(values(x), wanted) << layout.name << " " << name(dtype);
    }
  }
}

TEST(StridedLoop, ThreadsChangeNoBit) {
  const Tensor a = random_tensor({411, 511});
  const Tensor b = random_tensor({511, 411}, DType::kF32, 2).t();
  const Tensor narrow = random_tensor({90000, 3}, DType::kBF16, 3);
  const Tensor column = random_tensor({90000, 1}, DType::kF32, 4);
  expect_same_bits_for_any_threads([&] {
    return std::vector<Tensor>{add(a, b, 0.3), gelu(a), tanh(b).contiguous(), mul(narrow, column),
                               where(gt(a, b), a, b)};
  });
}

}  // namespace
}  // namespace lockstep

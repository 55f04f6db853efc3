#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/check.h"
#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/common/sorted_place.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 4096;

void searchsorted(const Out& out, const In& sequence, const In& self, bool out_int32, bool right,
                  std::optional<std::string_view> side, const In& sorter) {
  const bool behind = right || side == "right";
  const int64_t n = sequence.size(-1);
  const int64_t values = sequence.rank == 1 ? std::max<int64_t>(self.numel, 1) : self.size(-1);
  const std::vector<int64_t> order =
      sorter.defined() ? read_indices("searchsorted", sorter, n) : std::vector<int64_t>();
  with_type(sequence.dtype, [&]<class T>() {
    using C = std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, double>, T, float>;
    parallel_for(0, self.numel, kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = sequence.rank == 1 ? 0 : i / values;
        const T* x = sequence.data<T>() + row * n;
        const int64_t* at = order.empty() ? nullptr : order.data() + row * n;
        const int64_t place =
            sorted_place(convert<C>(self.data<T>()[i]), n, behind,
                         [&](int64_t k) { return convert<C>(x[at == nullptr ? k : at[k]]); });
        if (out_int32) {
          out.data<int32_t>()[i] = static_cast<int32_t>(place);
        } else {
          out.data<int64_t>()[i] = place;
        }
      }
    });
  });
}

/// Reads element i of a vector of any stride.
template <class To>
To read_element(const Tensor& vector, int64_t i) {
  return with_type(vector.dtype(), [&]<class T>() {
    return convert<To>(vector.data<T>()[i * vector.strides()[0]]);
  });
}

Tensor bincount(const Tensor& self, OptionalTensor weights, int64_t minlength) {
  LS_CHECK(minlength >= 0, ShapeError, "[bincount] minlength must not be negative, got {}.",
           minlength);
  const bool vector = self.dim() == 1;
  LS_CHECK((vector || self.numel() == 0) && self.dim() <= 1, ShapeError,
           "[bincount] expected a vector of integers, got {}.", to_string(self));
  LS_CHECK(is_integral(self.dtype()), DTypeError, "[bincount] expected integers, got {}.",
           to_string(self));
  LS_CHECK(!weights || same(weights->sizes(), self.sizes()), ShapeError,
           "[bincount] expected a weight for each of {} numbers, got shape {}.", self.shape(),
           weights->shape());
  int64_t bins = minlength;
  for (int64_t i = 0; i < self.numel(); ++i) {
    const int64_t number = read_element<int64_t>(self, i);
    LS_CHECK(number >= 0 && number < std::numeric_limits<int64_t>::max(), IndexError,
             "[bincount] expected numbers of at least 0 and below 2^63 - 1, got {} at position {}.",
             number, i);
    bins = std::max(bins, number + 1);
  }
  if (!weights || self.numel() == 0) {
    Tensor result = empty_tensor({bins}, DType::kI64);
    int64_t* counts = result.data<int64_t>();
    std::fill_n(counts, bins, int64_t{0});
    for (int64_t i = 0; i < self.numel(); ++i) ++counts[read_element<int64_t>(self, i)];
    return result;
  }
  const auto add_up = [&]<class C>() {
    Tensor result = empty_tensor({bins}, dtype_of<C>);
    C* sums = result.data<C>();
    std::fill_n(sums, bins, C(0));
    for (int64_t i = 0; i < self.numel(); ++i) {
      sums[read_element<int64_t>(self, i)] += read_element<C>(*weights, i);
    }
    return result;
  };
  if (weights->dtype() == DType::kF32) return add_up.template operator()<float>();
  return add_up.template operator()<double>();
}

/// Smallest and largest element, both 0 for none; NaN if there is one.
template <class C, class T>
std::pair<C, C> range_of(const In& self) {
  if (self.numel == 0) return {C(0), C(0)};
  const T* x = self.data<T>();
  C least = convert<C>(x[0]);
  C most = least;
  for (int64_t i = 0; i < self.numel; ++i) {
    const C value = convert<C>(x[i]);
    if (value != value) return {value, value};
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return {least, most};
}

void histc(const Out& out, const In& self, int64_t bins, Scalar min, Scalar max) {
  std::vector<int64_t> counts(static_cast<size_t>(bins));
  with_floating_type(self.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    C low = static_cast<C>(min.to_double());
    C high = static_cast<C>(max.to_double());
    if (low == high) std::tie(low, high) = range_of<C, T>(self);
    LS_CHECK(std::isfinite(low) && std::isfinite(high), Error,
             "[histc] expected a finite range, got {} to {}. Give min and max.", low, high);
    if (low == high) {
      low -= 1;
      high += 1;
    }
    const T* x = self.data<T>();
    for (int64_t i = 0; i < self.numel; ++i) {
      const C value = convert<C>(x[i]);
      if (!(value >= low && value <= high)) continue;
      const C share = (value - low) * static_cast<C>(bins) / (high - low);
      const bool inside = share < static_cast<C>(bins);
      const int64_t bin = inside ? static_cast<int64_t>(share) : bins - 1;
      ++counts[static_cast<size_t>(bin)];
    }
    T* y = out.data<T>();
    for (int64_t i = 0; i < bins; ++i) {
      y[i] = convert<T>(static_cast<double>(counts[static_cast<size_t>(i)]));
    }
  });
}

}  // namespace

LS_KERNEL(CPU, "histc", histc, Strides::kContiguous);
LS_KERNEL(CPU, "searchsorted.Tensor", searchsorted, Strides::kContiguous);
LS_KERNEL(CPU, "bincount", bincount, Strides::kAny);

}  // namespace lockstep::cpu

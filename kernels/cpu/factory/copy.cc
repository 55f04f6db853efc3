#include "kernels/cpu/factory/copy.h"

#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "kernels/common/strided_plan.h"
#include "kernels/cpu/captured_loop.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/transpose.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrain = 32768;  // minimum elements per task
constexpr int64_t kChunk = 512;    // elements converted through the buffer at a time

template <class T>
void copy_row(int64_t n, char* to, int64_t to_stride, const char* from, int64_t from_stride) {
  constexpr int64_t kSize = sizeof(T);
  if (to_stride == kSize && from_stride == kSize) {
    if (n * kSize <= 32) {  // cheaper than calling memcpy
      for (int64_t i = 0; i < n; ++i)
        reinterpret_cast<T*>(to)[i] = reinterpret_cast<const T*>(from)[i];
    } else {
      std::memcpy(to, from, static_cast<size_t>(n * kSize));
    }
  } else if (to_stride == kSize && from_stride == 0) {
    std::fill_n(reinterpret_cast<T*>(to), n, *reinterpret_cast<const T*>(from));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<T*>(to + i * to_stride) =
          *reinterpret_cast<const T*>(from + i * from_stride);
    }
  }
}

using RowFunction = void (*)(int64_t, char*, int64_t, const char*, int64_t);

RowFunction row_function(DType dtype) {
  switch (lockstep::size_of(dtype)) {
    case 1:
      return &copy_row<uint8_t>;
    case 2:
      return &copy_row<uint16_t>;
    case 4:
      return &copy_row<uint32_t>;
    default:
      return &copy_row<uint64_t>;
  }
}

/// Converts rows from one dtype to another: directly if one side is stored as a lane, else through
/// a buffer of the lane that can represent every value of the source.
class Converter {
 public:
  Converter(DType to, DType from) {
    const ComputeLane lane = lane_of_cast(to, from);
    loads_directly_ = is_stored_as(to, lane);
    stores_directly_ = is_stored_as(from, lane);
    to_size_ = static_cast<int64_t>(lockstep::size_of(to));
    from_size_ = static_cast<int64_t>(lockstep::size_of(from));
    load_ = load_function(lane, from);
    store_ = store_function(to, lane);
  }

  void row(int64_t n, char* to, int64_t to_stride, const char* from, int64_t from_stride) const {
    if (loads_directly_ && to_stride == to_size_) return load_(n, to, from, from_stride);
    if (stores_directly_ && from_stride == from_size_) return store_(n, to, to_stride, from);
    alignas(64) char buffer[kChunk * sizeof(double)];
    for (int64_t i = 0; i < n; i += kChunk) {
      const int64_t count = std::min(kChunk, n - i);
      load_(count, buffer, from + i * from_stride, from_stride);
      store_(count, to + i * to_stride, to_stride, buffer);
    }
  }

 private:
  bool loads_directly_;
  bool stores_directly_;
  int64_t to_size_;
  int64_t from_size_;
  LoadFunction load_;
  StoreFunction store_;
};

/// Calls row(n, to, to_stride, from, from_stride) for the plan's rows; long rows are split.
template <class Row>
void for_rows(const StridedPlan& plan, const Row& row) {
  const int64_t length = std::min(plan.inner(), kGrain);
  const int64_t per_row = (plan.inner() + length - 1) / length;
  const int64_t grain = std::max<int64_t>(1, kGrain / length);
  const int64_t to_stride = plan.strides[0][0];
  const int64_t from_stride = plan.strides[1][0];
  parallel_for(0, plan.rows() * per_row, grain, [&](int64_t first, int64_t last) {
    RowWalker walker(plan, first / per_row);
    int64_t part = first % per_row;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = part * length;
      row(std::min(length, plan.inner() - begin), walker.address(0) + begin * to_stride, to_stride,
          walker.address(1) + begin * from_stride, from_stride);
      if (++part == per_row) {
        part = 0;
        walker.next();
      }
    }
  });
}

void copy_bytes(char* to, const char* from, int64_t bytes) {
  constexpr int64_t kBytes = int64_t{1} << 18;
  if (bytes <= kBytes) {
    std::memcpy(to, from, static_cast<size_t>(bytes));
    return;
  }
  parallel_for(0, bytes, kBytes, [&](int64_t first, int64_t last) {
    std::memcpy(to + first, from + first, static_cast<size_t>(last - first));
  });
}

}  // namespace

void copy_elements(const Out& out, const In& src) {
  if (LoopCapture* const capture = LoopCapture::active()) [[unlikely]] {
    return capture_cast(*capture, out, src);
  }
  if (out.numel == 0) return;
  const int64_t element = static_cast<int64_t>(lockstep::size_of(out.dtype));
  if (out.dtype == src.dtype && out.contiguous && src.contiguous && out.numel == src.numel) {
    if (out.address == src.address) return;
    copy_bytes(out.data<char>(), src.data<char>(), out.numel * element);
    return;
  }
  StridedPlan plan;
  const In* const inputs[] = {&src};
  make_plan(plan, out, inputs);
  if (out.dtype != src.dtype) {
    const Converter converter(out.dtype, src.dtype);
    for_rows(plan, [&](auto... row) { converter.row(row...); });
  } else if (const int dimension = transposed_dimension(plan, element); dimension != 0) {
    transpose_copy(plan, dimension, element);
  } else {
    for_rows(plan, row_function(out.dtype));
  }
}

void fill_elements(const Out& out, const Scalar& value) {
  // Converts the number to one element of out's dtype, which is then copied to all elements.
  const double real = value.to_double();
  const int64_t integer = value.is_floating() ? 0 : value.to_int();
  alignas(8) char element[8] = {};
  const ComputeLane lane = value.is_floating() ? ComputeLane::kF64 : ComputeLane::kI64;
  store_function(out.dtype, lane)(
      1, element, static_cast<int64_t>(lockstep::size_of(out.dtype)),
      value.is_floating() ? static_cast<const void*>(&real) : static_cast<const void*>(&integer));
  In number;
  number.address = element;
  number.rank = 0;
  number.numel = 1;
  number.contiguous = true;
  number.dtype = out.dtype;
  copy_elements(out, number);
}

}  // namespace lockstep::cpu

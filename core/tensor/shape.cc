#include "core/tensor/shape.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"
#include "core/base/checked_int.h"
#include "core/tensor/storage_extent.h"

namespace lockstep {

std::string to_string(IntList list) { return fmt::format("[{}]", fmt::join(list, ", ")); }

int64_t count_elements(IntList sizes) {
  int64_t count = 1;
  bool empty = false;
  for (int64_t size : sizes) {
    LS_CHECK(size >= 0, ShapeError, "[shape] sizes must not be negative, got {}.",
             to_string(sizes));
    if (size == 0) {
      empty = true;
    } else {
      LS_CHECK(!__builtin_mul_overflow(count, size, &count), ShapeError,
               "[shape] {} has more elements than a 64-bit count can hold.", to_string(sizes));
    }
  }
  return empty ? 0 : count;
}

Dims contiguous_strides(IntList sizes) {
  Dims strides(sizes.size(), 1);
  for (size_t i = sizes.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

int64_t storage_extent(std::string_view op, IntList sizes, IntList strides) {
  LS_CHECK(sizes.size() == strides.size(), ShapeError,
           "[{}] sizes and strides differ in length: got {} and {}.", op, to_string(sizes),
           to_string(strides));
  const bool empty = count_elements(sizes) == 0;
  CheckedInt extent(op, 1);
  for (size_t i = 0; i < sizes.size(); ++i) {
    LS_CHECK(strides[i] >= 0, ShapeError, "[{}] strides must not be negative, got {}.", op,
             to_string(strides));
    // The product with the whole size must fit, too: views compute it.
    const CheckedInt along = CheckedInt(op, strides[i]) * std::max<int64_t>(sizes[i], 1);
    extent += (along - strides[i]).value();
  }
  return empty ? 0 : extent.value();
}

size_t storage_bytes(std::string_view op, int64_t elements, DType dtype) {
  int64_t bytes = 0;
  LS_CHECK(!__builtin_mul_overflow(elements, static_cast<int64_t>(size_of(dtype)), &bytes),
           OutOfMemoryError, "[{}] {} elements of {} are more bytes than an address can hold.", op,
           elements, to_string(dtype));
  return static_cast<size_t>(bytes);
}

bool is_contiguous(IntList sizes, IntList strides) {
  int64_t expected = 1;
  bool rows = true;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) {
      rows = rows && strides[i] == expected;
      expected *= sizes[i];
    }
  }
  return rows;
}

namespace {

/// Dimensions of more than one element, innermost (smallest stride) first.
SmallVector<size_t, 8> by_stride(IntList sizes, IntList strides) {
  SmallVector<size_t, 8> order;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 1) order.push_back(i);
  }
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  return order;
}

}  // namespace

bool is_dense(IntList sizes, IntList strides) {
  if (count_elements(sizes) == 0) return true;
  int64_t expected = 1;
  for (size_t i : by_stride(sizes, strides)) {
    if (strides[i] != expected) return false;
    expected *= sizes[i];
  }
  return true;
}

bool may_self_overlap(IntList sizes, IntList strides) {
  if (count_elements(sizes) == 0) return false;
  int64_t reach = 0;  // largest offset that the inner dimensions can reach
  for (size_t i : by_stride(sizes, strides)) {
    if (strides[i] <= reach) return true;
    reach += strides[i] * (sizes[i] - 1);
  }
  return false;
}

int64_t wrap_dim(std::string_view op, int64_t dim, int64_t rank) {
  const int64_t range = std::max<int64_t>(rank, 1);
  LS_CHECK(dim >= -range && dim < range, IndexError,
           "[{}] dimension out of range: expected one in [{}, {}], got {}.", op, -range, range - 1,
           dim);
  return dim < 0 ? dim + range : dim;
}

uint64_t dim_mask(std::string_view op, IntList dims, int64_t rank) {
  LS_CHECK(rank <= 64, ShapeError, "[{}] at most 64 dimensions are supported, got {}.", op, rank);
  if (dims.empty())
    return rank == 64 ? ~uint64_t{0} : (uint64_t{1} << std::max<int64_t>(rank, 1)) - 1;
  uint64_t mask = 0;
  for (int64_t dim : dims) {
    const uint64_t bit = uint64_t{1} << wrap_dim(op, dim, rank);
    LS_CHECK((mask & bit) == 0, ShapeError, "[{}] dimension {} appears twice in {}.", op, dim,
             to_string(dims));
    mask |= bit;
  }
  return mask;
}

Dims broadcast(std::string_view op, IntList a, IntList b) {
  if (same(a, b)) return to_dims(a);
  const size_t rank = std::max(a.size(), b.size());
  Dims out(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    LS_CHECK(x == y || x == 1 || y == 1, ShapeError,
             "[{}] shapes {} and {} do not broadcast: dimension -{} is {} and {}. Sizes must be "
             "equal or 1.",
             op, to_string(a), to_string(b), i + 1, x, y);
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

Dims broadcast_strides(IntList sizes, IntList strides, IntList to) {
  Dims out(to.size(), 0);
  const size_t lead = to.size() - sizes.size();
  for (size_t i = 0; i < sizes.size(); ++i) {
    out[lead + i] = sizes[i] == 1 && to[lead + i] != 1 ? 0 : strides[i];
  }
  return out;
}

bool view_strides(IntList sizes, IntList strides, IntList to, Dims& out) {
  out = Dims(to.size(), 1);
  if (count_elements(sizes) == 0) {
    out = contiguous_strides(to);
    return true;
  }
  // Walk both shapes from the innermost dimension. A contiguous run of old dimensions (stride[i] ==
  // size[i+1] * stride[i+1]) can be split into new ones in any way.
  int64_t to_dim = static_cast<int64_t>(to.size()) - 1;
  int64_t run_stride = sizes.empty() ? 1 : strides.back();
  int64_t run = 1;
  int64_t cut = 1;
  for (int64_t i = static_cast<int64_t>(sizes.size()) - 1; i >= 0; --i) {
    run *= sizes[i];
    const bool run_ends = i == 0 || (sizes[i - 1] != 1 && strides[i - 1] != run * run_stride);
    if (!run_ends) continue;
    while (to_dim >= 0 && (cut < run || to[to_dim] == 1)) {
      out[to_dim] = cut * run_stride;
      cut *= to[to_dim--];
    }
    if (cut != run) return false;
    if (i > 0) {
      run_stride = strides[i - 1];
      run = cut = 1;
    }
  }
  // Only dimensions of size 1 remain; their stride does not matter.
  for (; to_dim >= 0; --to_dim) {
    if (to[to_dim] != 1) return false;
    out[to_dim] = cut * run_stride;
  }
  return true;
}

Dims infer_size(std::string_view op, IntList wanted, int64_t numel) {
  Dims out = to_dims(wanted);
  int64_t known = 1;
  bool fits = true;  // the caller's sizes may overflow int64
  int64_t* hole = nullptr;
  for (int64_t& size : out) {
    if (size == -1) {
      LS_CHECK(hole == nullptr, ShapeError, "[{}] only one size may be -1, got {}.", op,
               to_string(wanted));
      hole = &size;
    } else {
      LS_CHECK(size >= 0, ShapeError, "[{}] sizes must not be negative, got {}.", op,
               to_string(wanted));
      fits = fits && !__builtin_mul_overflow(known, size, &known);
    }
  }
  if (fits && hole != nullptr && known != 0 && numel % known == 0) {
    *hole = numel / known;
    return out;
  }
  LS_CHECK(fits && hole == nullptr && known == numel, ShapeError,
           "[{}] shape {} does not hold the {} elements of the input.", op, to_string(wanted),
           numel);
  if (numel == 0) count_elements(out);  // throws where strides would overflow
  return out;
}

}  // namespace lockstep

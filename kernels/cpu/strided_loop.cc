#include "kernels/cpu/strided_loop.h"

#include <algorithm>
#include <array>

#include "core/parallel.h"
#include "kernels/cpu/strided_plan.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kChunk = 512;
/// Where rows would be shorter than this, a longer dimension becomes the row.
constexpr int64_t kShortRow = 16;
/// Rows and columns of a block, for operands whose neighbours lie across the rows: what one row
/// brings into the cache, the next ones use.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kBlockColumns = 64;

/// True when no operand needs a plan or a buffer: the tensors are plain arrays of their lanes.
bool is_plain(const Out& out, std::span<const In* const> inputs, const LoopSpec& spec) {
  if (!out.contiguous || !is_stored_as(out.dtype, spec.lanes[0])) return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const In& in = *inputs[i];
    if (!in.contiguous || in.numel != out.numel || !is_stored_as(in.dtype, spec.lanes[i + 1])) {
      return false;
    }
  }
  return true;
}

void run_plain(const Out& out, std::span<const In* const> inputs, const LoopSpec& spec) {
  std::array<const char*, 3> in{};
  for (size_t i = 0; i < inputs.size(); ++i) in[i] = static_cast<const char*>(inputs[i]->address);
  const auto run = [&](int64_t first, int64_t last) {
    std::array<const void*, 3> from{};
    for (size_t i = 0; i < inputs.size(); ++i) from[i] = in[i] + first * size_of(spec.lanes[i + 1]);
    char* to = static_cast<char*>(out.address) + first * size_of(spec.lanes[0]);
    spec.loop(last - first, to, from.data(), spec.functor);
  };
  if (out.numel <= spec.grain) {
    run(0, out.numel);
  } else {
    parallel_for(0, out.numel, spec.grain, run);
  }
}

/// How one operand is reached.
struct Access {
  bool direct = false;  ///< the loop works on the tensor's own memory
  LoadFunction load = nullptr;
  int64_t stride = 0;  ///< bytes, inside a row
};

/// One thread's walk over a part of the nest.
class Walk {
 public:
  Walk(const StridedPlan& plan, const LoopSpec& spec, const Access* access, StoreFunction store)
      : plan_(plan), spec_(spec), access_(access), store_(store) {}

  /// Pieces [first, last) of the rows, cut into `per_row` pieces of `length` columns.
  void pieces(int64_t first, int64_t last, int64_t per_row, int64_t length) {
    RowWalker row(plan_, first / per_row);
    int64_t piece = first % per_row;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = piece * length;
      one_piece(row.addresses(), begin, std::min(length, plan_.inner() - begin));
      if (++piece == per_row) {
        piece = 0;
        row.next();
      }
    }
  }

  /// Rows [first, last), in blocks of kBlockRows.
  void blocks(int64_t first, int64_t last, int64_t length) {
    RowWalker row(plan_, first);
    char* addresses[kBlockRows][StridedPlan::kMaxOperands];
    for (int64_t begin = first; begin < last; begin += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, last - begin);
      for (int64_t r = 0; r < rows; ++r, row.next()) {
        std::copy_n(row.addresses(), plan_.operands, addresses[r]);
      }
      for (int64_t column = 0; column < plan_.inner(); column += length) {
        const int64_t count = std::min(length, plan_.inner() - column);
        for (int64_t r = 0; r < rows; ++r) one_piece(addresses[r], column, count);
      }
    }
  }

 private:
  void one_piece(char* const* row, int64_t begin, int64_t count) {
    const void* in[3];
    for (int o = 1; o < plan_.operands; ++o) {
      const Access& access = access_[o];
      const char* from = row[o] + begin * access.stride;
      in[o - 1] = access.direct ? from : loaded(o, from, count);
    }
    char* to = row[0] + begin * access_[0].stride;
    if (access_[0].direct) {
      spec_.loop(count, to, in, spec_.functor);
    } else {
      spec_.loop(count, buffers_[0], in, spec_.functor);
      store_(count, to, access_[0].stride, buffers_[0]);
    }
  }

  /// Fills the operand's buffer. One that is the same all along the row is filled once for as long
  /// as its address stays.
  const void* loaded(int operand, const char* from, int64_t count) {
    const Access& access = access_[operand];
    if (access.stride == 0) {
      if (held_[operand] == from && held_count_[operand] >= count) return buffers_[operand];
      held_[operand] = from;
      held_count_[operand] = count;
    }
    access.load(count, buffers_[operand], from, access.stride);
    return buffers_[operand];
  }

  const StridedPlan& plan_;
  const LoopSpec& spec_;
  const Access* access_;
  StoreFunction store_;
  const char* held_[StridedPlan::kMaxOperands] = {};
  int64_t held_count_[StridedPlan::kMaxOperands] = {};
  alignas(64) char buffers_[StridedPlan::kMaxOperands][kChunk * sizeof(double)];
};

/// True when an input's neighbours lie in different rows.
bool crosses_rows(const StridedPlan& plan, std::span<const In* const> inputs) {
  for (int o = 1; o < plan.operands; ++o) {
    const int64_t element = static_cast<int64_t>(lockstep::size_of(inputs[o - 1]->dtype));
    for (int i = 1; i < plan.rank; ++i) {
      if (plan.strides[o][i] == element && plan.strides[o][0] > element) return true;
    }
  }
  return false;
}

}  // namespace

void strided_loop(const Out& out, std::span<const In* const> inputs, const LoopSpec& spec) {
  if (is_plain(out, inputs, spec)) [[likely]] {
    run_plain(out, inputs, spec);
    return;
  }
  if (out.numel == 0) return;
  StridedPlan plan;
  make_plan(plan, out, inputs);
  const bool short_rows = plan.rank > 1 && plan.inner() < kShortRow;
  if (short_rows) lengthen_rows(plan);
  Access access[StridedPlan::kMaxOperands];
  bool all_direct = true;
  for (int o = 0; o < plan.operands; ++o) {
    const DType dtype = o == 0 ? out.dtype : inputs[o - 1]->dtype;
    const Lane lane = spec.lanes[o];
    access[o].stride = plan.strides[o][0];
    access[o].direct = is_stored_as(dtype, lane) && access[o].stride == size_of(lane);
    access[o].load = o == 0 ? nullptr : load_function(lane, dtype);
    all_direct = all_direct && access[o].direct;
  }
  const StoreFunction store = store_function(out.dtype, spec.lanes[0]);
  const bool crossing = crosses_rows(plan, inputs);
  if (plan.rank > 1 && (short_rows || crossing)) {
    const int64_t length = crossing && !short_rows ? kBlockColumns : kChunk;
    const int64_t grain = std::max<int64_t>(kBlockRows, spec.grain / plan.inner());
    parallel_for(0, plan.rows(), grain, [&](int64_t first, int64_t last) {
      Walk(plan, spec, access, store).blocks(first, last, length);
    });
    return;
  }
  const int64_t length = std::min(plan.inner(), all_direct ? spec.grain : kChunk);
  const int64_t per_row = (plan.inner() + length - 1) / length;
  parallel_for(
      0, plan.rows() * per_row, std::max<int64_t>(1, spec.grain / length),
      [&](int64_t a, int64_t b) { Walk(plan, spec, access, store).pieces(a, b, per_row, length); });
}

}  // namespace lockstep::cpu

#include "kernels/cpu/strided_loop.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/base/parallel.h"
#include "kernels/common/strided_plan.h"
#include "kernels/cpu/captured_loop.h"
#include "kernels/cpu/streaming.h"
#include "kernels/cpu/transpose.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kChunk = 512;
/// If rows would be shorter than this, a longer dimension becomes the innermost one.
constexpr int64_t kShortRow = 16;
/// Rows and columns of a block, for operands that are contiguous across the rows: the cache lines
/// loaded for one row are used by the next ones.
constexpr int64_t kBlockRows = 16;
constexpr int64_t kBlockColumns = 64;
/// Size of a block that is transposed: its columns are pages apart, and each is read in one run. If
/// everything fits into the cache, long rows are best for the other operands; if not, and columns
/// are prefetched, the block is square.
constexpr int64_t kTileBytes = 32768;
constexpr int64_t kTileColumns = 256;
constexpr int64_t kStreamedTileRows = 128;
/// Bytes of the output computed at a time when inputs are prefetched.
constexpr int64_t kPieceBytes = 1024;

/// True if no operand needs a plan or a buffer: the tensors are contiguous arrays of their lanes.
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

/// Bytes read and written if the result may be streamed, that is, if it is large and not in place;
/// else 0.
int64_t streamable_bytes(const Out& out, std::span<const In* const> inputs) {
  constexpr int64_t kSmall = int64_t{1} << 20;
  if (out.numel < kSmall) return 0;
  const auto bytes = [](const TensorArg& x) {
    return x.numel * static_cast<int64_t>(lockstep::size_of(x.dtype));
  };
  int64_t all = bytes(out);
  for (const In* in : inputs) {
    if (in->address == out.address) return 0;
    all += bytes(*in);
  }
  return all;
}

bool all_bf16(const Out& out, std::span<const In* const> inputs) {
  return out.dtype == DType::kBF16 && std::all_of(inputs.begin(), inputs.end(), [](const In* in) {
           return in->dtype == DType::kBF16;
         });
}

/// The spec of the loop on bf16 elements.
LoopSpec narrowed(LoopSpec spec) {
  spec.loop = std::exchange(spec.bf16_loop, nullptr);
  std::fill(std::begin(spec.lanes), std::end(spec.lanes), ComputeLane::kBF16);
  return spec;
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
  if (out.numel <= spec.grain()) {
    run(0, out.numel);
  } else {
    parallel_for(0, out.numel, spec.grain(), run);
  }
}

/// How the loop accesses one operand.
struct Access {
  bool direct = false;   ///< the loop reads or writes the tensor's own memory
  bool in_lane = false;  ///< elements are stored in the loop's lane type
  LoadFunction load = nullptr;
  int64_t element = 0;  ///< size in bytes
  int64_t stride = 0;   ///< in bytes, along a row
};

/// True if operand `o` is contiguous along dimension `i` rather than along the row.
bool contiguous_across(const StridedPlan& plan, int o, int i, int64_t element) {
  return plan.strides[o][i] == element && plan.strides[o][0] > element;
}

/// One thread's walk over a part of the loop nest.
class Walk {
 public:
  Walk(const StridedPlan& plan, const LoopSpec& spec, std::span<const Access> access,
       StoreFunction store, bool streamed)
      : plan_(plan), spec_(spec), store_(store), ahead_(streamed || spec.heavy) {
    std::copy(access.begin(), access.end(), access_);
    streamed_ = streamed && access_[0].direct;
  }
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  ~Walk() {
    if (streamed_) finish_streaming();
  }

  /// Processes pieces [first, last) of the rows, each of which has `per_row` pieces of `length`
  /// columns.
  void pieces(int64_t first, int64_t last, int64_t per_row, int64_t length) {
    RowWalker row(plan_, first / per_row);
    int64_t piece = first % per_row;
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = piece * length;
      char* at[StridedPlan::kMaxOperands];
      move_to(at, row.addresses(), begin);
      one_piece(at, std::min(length, plan_.inner() - begin));
      if (++piece == per_row) {
        piece = 0;
        row.next();
      }
    }
  }

  /// Processes rows [first, last) in blocks of kBlockRows.
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
        for (int64_t r = 0; r < rows; ++r) {
          char* at[StridedPlan::kMaxOperands];
          move_to(at, addresses[r], column);
          one_piece(at, count);
        }
      }
    }
  }

  /// Processes rows that follow each other along dimension 1, along which some inputs are
  /// contiguous: the block of such an input is transposed first, so that rows are then read
  /// contiguously.
  void transposed_blocks(int64_t first, int64_t last) {
    alignas(64) char tiles[StridedPlan::kMaxOperands - 1][kTileBytes];
    int64_t element = 1;  // size of the largest element
    Access original[StridedPlan::kMaxOperands];
    std::copy_n(access_, plan_.operands, original);
    for (int o = 1; o < plan_.operands; ++o) {
      if (!crosses(o)) continue;
      access_[o].stride = access_[o].element;
      element = std::max(element, access_[o].element);
      access_[o].direct = access_[o].in_lane;
    }
    const int64_t columns = streamed_ ? kTileBytes / (kStreamedTileRows * element) : kTileColumns;
    const int64_t height = kTileBytes / (columns * element);
    RowWalker row(plan_, first);
    for (int64_t begin = first; begin < last;) {
      const int64_t along = plan_.sizes[1] - begin % plan_.sizes[1];
      const int64_t rows = std::min({height, last - begin, along});
      char* start[StridedPlan::kMaxOperands];
      std::copy_n(row.addresses(), plan_.operands, start);
      for (int64_t r = 0; r < rows; ++r) row.next();
      begin += rows;
      for (int64_t column = 0; column < plan_.inner(); column += columns) {
        const int64_t count = std::min(columns, plan_.inner() - column);
        char* at[StridedPlan::kMaxOperands];
        int64_t step[StridedPlan::kMaxOperands];  // from row to row
        for (int o = 0; o < plan_.operands; ++o) {
          const int64_t stride = original[o].stride;
          at[o] = start[o] + column * stride;
          step[o] = plan_.strides[o][1];
          if (o == 0 || !crosses(o)) continue;
          if (streamed_) fetch_columns(at[o] + columns * stride, stride, count, rows * step[o]);
          step[o] *= columns;
          transpose_block(access_[o].element)(tiles[o - 1], step[o], at[o], stride, rows, count);
          at[o] = tiles[o - 1];
        }
        for (int64_t r = 0; r < rows; ++r) {
          one_piece(at, count);
          for (int o = 0; o < plan_.operands; ++o) at[o] += step[o];
        }
      }
    }
  }

 private:
  bool crosses(int o) const { return contiguous_across(plan_, o, 1, access_[o].element); }
  void move_to(char** at, char* const* row, int64_t column) const {
    for (int o = 0; o < plan_.operands; ++o) at[o] = row[o] + column * access_[o].stride;
  }

  void one_piece(char* const* at, int64_t count) {
    const void* in[3];
    for (int o = 1; o < plan_.operands; ++o) {
      const Access& access = access_[o];
      if (ahead_ && access.stride == access.element) {
        const int64_t bytes = count * access.element;
        fetch_ahead(at[o] + 2 * bytes, bytes);
      }
      in[o - 1] = access_[o].direct ? at[o] : loaded(o, at[o], count);
    }
    if (streamed_) {
      spec_.loop(count, buffers_[0], in, spec_.functor);
      stream(at[0], buffers_[0], count * access_[0].stride);
    } else if (access_[0].direct) {
      spec_.loop(count, at[0], in, spec_.functor);
    } else {
      spec_.loop(count, buffers_[0], in, spec_.functor);
      store_(count, at[0], access_[0].stride, buffers_[0]);
    }
  }

  /// Fills the operand's buffer. An operand with row stride 0 is loaded again only when its address
  /// changes.
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
  Access access_[StridedPlan::kMaxOperands];
  StoreFunction store_;
  bool ahead_;
  bool streamed_;
  const char* held_[StridedPlan::kMaxOperands] = {};
  int64_t held_count_[StridedPlan::kMaxOperands] = {};
  alignas(64) char buffers_[StridedPlan::kMaxOperands][kChunk * sizeof(double)];
};

/// True if some input is contiguous along one of dimensions [first, last) rather than along the
/// row.
bool crosses_rows(const StridedPlan& plan, std::span<const Access> access, int first, int last) {
  for (int o = 1; o < plan.operands; ++o) {
    for (int i = first; i < last; ++i) {
      if (contiguous_across(plan, o, i, access[static_cast<size_t>(o)].element)) return true;
    }
  }
  return false;
}

}  // namespace

void strided_loop(const Out& out, std::span<const In* const> inputs, const LoopSpec& spec) {
  if (LoopCapture* const capture = LoopCapture::active()) [[unlikely]] {
    const bool is_narrow = spec.bf16_loop != nullptr && all_bf16(out, inputs);
    return capture_loop(*capture, out, inputs, is_narrow ? narrowed(spec) : spec);
  }
  const int64_t streamable = streamable_bytes(out, inputs);
  const bool streamed = worth_streaming(streamable);
  const bool ahead = streamed || (spec.heavy && out.numel > spec.grain());
  if (!ahead && is_plain(out, inputs, spec)) [[likely]] {
    run_plain(out, inputs, spec);
    return;
  }
  if (out.numel == 0) return;
  if (spec.bf16_loop != nullptr && all_bf16(out, inputs)) {
    return strided_loop(out, inputs, narrowed(spec));
  }
  StridedPlan plan;
  make_plan(plan, out, inputs);
  const bool short_rows = plan.rank > 1 && plan.inner() < kShortRow;
  if (short_rows) lengthen_rows(plan);
  Access access[StridedPlan::kMaxOperands];
  bool all_direct = true;
  for (int o = 0; o < plan.operands; ++o) {
    const DType dtype = o == 0 ? out.dtype : inputs[o - 1]->dtype;
    const ComputeLane lane = spec.lanes[o];
    access[o].stride = plan.strides[o][0];
    access[o].element = static_cast<int64_t>(lockstep::size_of(dtype));
    access[o].in_lane = is_stored_as(dtype, lane);
    access[o].direct = access[o].in_lane && access[o].stride == size_of(lane);
    access[o].load = o == 0 ? nullptr : load_function(lane, dtype);
    all_direct = all_direct && access[o].direct;
  }
  const StoreFunction store = store_function(out.dtype, spec.lanes[0]);
  const std::span<const Access> each(access, static_cast<size_t>(plan.operands));
  const bool crossing = crosses_rows(plan, each, 1, plan.rank);
  if (crossing && !short_rows && crosses_rows(plan, each, 1, 2)) {
    // Plain stores are expensive here (they first read the output, in short runs pages apart), so
    // streaming starts at half the size.
    const int64_t grain = std::max<int64_t>(kStreamedTileRows, spec.grain() / plan.inner());
    parallel_for(0, plan.rows(), grain, [&](int64_t first, int64_t last) {
      Walk(plan, spec, each, store, worth_streaming(2 * streamable)).transposed_blocks(first, last);
    });
    return;
  }
  if (plan.rank > 1 && (short_rows || crossing)) {
    const int64_t length = crossing && !short_rows ? kBlockColumns : kChunk;
    const int64_t grain = std::max<int64_t>(kBlockRows, spec.grain() / plan.inner());
    parallel_for(0, plan.rows(), grain, [&](int64_t first, int64_t last) {
      Walk(plan, spec, each, store, streamed).blocks(first, last, length);
    });
    return;
  }
  int64_t length = std::min(plan.inner(), all_direct ? spec.grain() : kChunk);
  if (ahead) length = std::min(length, kPieceBytes / access[0].element);
  const int64_t per_row = (plan.inner() + length - 1) / length;
  parallel_for(0, plan.rows() * per_row, std::max<int64_t>(1, spec.grain() / length),
               [&](int64_t a, int64_t b) {
                 Walk(plan, spec, each, store, streamed).pieces(a, b, per_row, length);
               });
}

}  // namespace lockstep::cpu

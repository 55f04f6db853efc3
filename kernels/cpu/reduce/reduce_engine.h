#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "core/base/parallel.h"
#include "kernels/common/reduce_plan.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/row_lanes.h"

namespace lockstep::cpu {

/// The reduction behind sum, mean, amax, any, ...: combines elements with `Op` (see joins.h) in
/// blocks that depend on shape and strides only, so that the bits do not depend on the number of
/// threads. Instantiated once per compute type; other element types are converted in short runs as
/// they are read.
template <class Op>
class ReduceEngine {
 public:
  using C = typename Op::Element;
  /// Type in which the totals of blocks are combined: f64 for f32.
  using Total = std::conditional_t<std::is_same_v<C, float>, double, C>;

  /// The elements to reduce.
  struct Source {
    const std::byte* data;
    size_t element;  ///< size in bytes
    DType dtype;
    bool direct;  ///< elements are of type C
    /// Converts n elements, `stride` elements apart.
    void (*read)(const std::byte* at, int64_t stride, C* to, int64_t n);
  };
  /// Stores n totals as the results from `first` on.
  using Store = FunctionRef<void(int64_t first, const Total* totals, int64_t n)>;

  static void run(const ReducePlan& plan, const Source& source, Store store) {
    if (plan.outputs == 0) return;
    if (plan.count == 0) {
      const Total nothing = Op::identity();
      for (int64_t i = 0; i < plan.outputs; ++i) store(i, &nothing, 1);
      return;
    }
    const bool columns = !plan.kept.empty() && plan.kept.back().stride == 1 &&
                         plan.kept.back().size >= 8 &&
                         (plan.reduced.back().stride != 1 || plan.reduced.back().size == 1);
    columns ? run_columns(plan, source, store) : run_rows(plan, source, store);
  }

 private:
  static constexpr int64_t kGrain = 32768;    // minimum elements per task
  static constexpr int64_t kBuffer = 512;     // elements converted at a time
  static constexpr int64_t kTile = 1024;      // columns combined at a time: fits into the L1 cache
  static constexpr int64_t kBlockRows = 128;  // rows combined before the totals are widened
  static constexpr int64_t kAhead = 2048;     // prefetch distance in bytes for long runs

  // Row kernels: the elements of one result are adjacent in memory, or no elements are.

  /// The elements of one result, split into blocks: whole runs of the last axis, or parts of one.
  struct RowBlocks {
    RowBlocks(const ReducePlan& plan, size_t element)
        : axis(plan.reduced.back()), outer(plan.reduced), runs(plan.count / axis.size) {
      outer.pop_back();
      parts = (axis.size + kLaneBlock - 1) / kLaneBlock;
      group = parts > 1 ? 1 : kLaneBlock / axis.size;
      count = parts > 1 ? runs * parts : (runs + group - 1) / group;
      // The hardware prefetcher stops at each 4 KiB page, which is as long as a block of bf16.
      // Prefetches past the end of contiguous memory are wasted, so only long stretches are
      // prefetched.
      const bool rows_touch =
          outer.empty() && !plan.kept.empty() && plan.kept.back().stride == axis.size;
      const int64_t stretch = axis.size * (rows_touch ? plan.kept.back().size : 1);
      const bool is_long = stretch * static_cast<int64_t>(element) >= 8 * kAhead;
      ahead = axis.stride == 1 && is_long ? kAhead : 0;
    }
    Axis axis;
    Axes outer;
    int64_t runs;   ///< runs of the last axis
    int64_t parts;  ///< blocks that one run is cut into
    int64_t group;  ///< runs in one block
    int64_t count;  ///< number of blocks
    int64_t ahead;  ///< prefetch distance in bytes, see LaneAccumulator::add
  };

  // `kPairs`: the variant compiled for wide vectors, see LaneAccumulator.

  template <bool kPairs>
  static void add_run(LaneAccumulator<Op>& lanes, const Source& source, int64_t offset,
                      int64_t stride, int64_t n, int64_t ahead) {
    const std::byte* at = source.data + offset * static_cast<int64_t>(source.element);
    if (source.direct && stride == 1) {
      lanes.template add<kPairs>(reinterpret_cast<const C*>(at), n, ahead);
      return;
    }
    if constexpr (std::is_same_v<C, float>) {
      if (source.dtype == DType::kBF16 && stride == 1) {  // converted as it is read
        lanes.template add<kPairs>(reinterpret_cast<const BFloat16*>(at), n, ahead);
        return;
      }
    }
    alignas(32) C buffer[kBuffer];
    for (int64_t i = 0; i < n; i += kBuffer) {
      const int64_t length = std::min(kBuffer, n - i);
      source.read(at + i * stride * static_cast<int64_t>(source.element), stride, buffer, length);
      lanes.template add<kPairs>(buffer, length);
    }
  }

  template <bool kPairs>
  static Total block_total(const RowBlocks& blocks, const Source& source, int64_t base,
                           int64_t block) {
    LaneAccumulator<Op> lanes;
    const auto [size, stride] = blocks.axis;
    if (blocks.parts > 1) {
      const int64_t first = block % blocks.parts * kLaneBlock;
      const int64_t run = base + offset_at(block / blocks.parts, blocks.outer);
      add_run<kPairs>(lanes, source, run + first * stride, stride,
                      std::min(kLaneBlock, size - first), blocks.ahead);
    } else {
      const int64_t last = std::min(blocks.runs, (block + 1) * blocks.group);
      for (int64_t run = block * blocks.group; run < last; ++run) {
        add_run<kPairs>(lanes, source, base + offset_at(run, blocks.outer), stride, size,
                        blocks.ahead);
      }
    }
    return static_cast<Total>(lanes.total());
  }

  /// Reduces blocks [first, last), numbered across all results; totals[i] is that of block first +
  /// i.
  template <bool kPairs>
  static void some_blocks(const ReducePlan& plan, const RowBlocks& blocks, const Source& source,
                          int64_t first, int64_t last, Total* totals) {
    for (int64_t i = first; i < last;) {
      const int64_t base = offset_at(i / blocks.count, plan.kept);
      const int64_t end = std::min(last, (i / blocks.count + 1) * blocks.count);
      for (; i < end; ++i) {
        totals[i - first] = block_total<kPairs>(blocks, source, base, i % blocks.count);
      }
    }
  }
  LS_WIDE_VECTORS static void wide_some_blocks(const ReducePlan& plan, const RowBlocks& blocks,
                                               const Source& source, int64_t first, int64_t last,
                                               Total* totals) {
    some_blocks<LS_HAVE_WIDE_VECTORS != 0>(plan, blocks, source, first, last, totals);
  }

  static void run_rows(const ReducePlan& plan, const Source& source, Store store) {
    const RowBlocks blocks(plan, source.element);
    const auto some = for_this_cpu(&wide_some_blocks, &some_blocks<false>);
    const auto joined = [](const Total* totals, int64_t n) {
      Total total = Op::identity();
      for (int64_t i = 0; i < n; ++i) total = Op::combine(total, totals[i]);
      return total;
    };
    if (blocks.count == 1 || plan.outputs >= 64) {
      const int64_t results = std::clamp<int64_t>(128 / blocks.count, 1, plan.outputs);
      parallel_for(0, plan.outputs, std::max<int64_t>(1, kGrain / plan.count),
                   [&](int64_t first, int64_t last) {
                     SmallVector<Total, 128> totals(static_cast<size_t>(results * blocks.count));
                     for (int64_t i = first; i < last; i += results) {
                       const int64_t n = std::min(results, last - i);
                       some(plan, blocks, source, i * blocks.count, (i + n) * blocks.count,
                            totals.data());
                       for (int64_t k = 0; k < n; ++k) {
                         totals[static_cast<size_t>(k)] =
                             joined(totals.data() + k * blocks.count, blocks.count);
                       }
                       store(i, totals.data(), n);
                     }
                   });
      return;
    }
    // Few long results: their blocks are distributed over the threads.
    std::vector<Total> totals(static_cast<size_t>(plan.outputs * blocks.count));
    parallel_for(0, plan.outputs * blocks.count, kGrain / kLaneBlock,
                 [&](int64_t first, int64_t last) {
                   some(plan, blocks, source, first, last, totals.data() + first);
                 });
    for (int64_t i = 0; i < plan.outputs; ++i) {
      const Total total = joined(totals.data() + i * blocks.count, blocks.count);
      store(i, &total, 1);
    }
  }

  // Column kernels: elements adjacent in memory belong to adjacent results.

  // Elements read in the compute type, or converted to it from bf16.

  static Vector<C> vector_at(const C* x) { return load_vector(x); }
  static C scalar_at(const C* x) { return *x; }
  static Vector<float> vector_at(const BFloat16* x) { return load_widened(x); }
  static float scalar_at(const BFloat16* x) { return static_cast<float>(*x); }

  /// joined[i] = with(joined[i], at) for i in [0, n), a vector at a time; at(x) loads element i of
  /// x.
  template <class With>
  static void join_each(C* joined, int64_t n, With with) {
    constexpr int64_t kWidth = VectorOf<C>::kWidth;
    int64_t i = 0;
    for (; i + kWidth <= n; i += kWidth) {
      store_vector<C>(joined + i, with(load_vector(joined + i), [i](const auto* x) -> Vector<C> {
                        return vector_at(x + i);
                      }));
    }
    for (; i < n; ++i) {
      joined[i] = with(joined[i], [i](const auto* x) -> C { return scalar_at(x + i); });
    }
  }
  template <class T>
  static void join_row(C* joined, const T* a, int64_t n) {
    join_each(joined, n,
              [a](auto sum, auto at) -> decltype(sum) { return Op::combine(sum, at(a)); });
  }
  /// Combines four rows: those of C pairwise first, those of other types one after the other.
  template <class T>
  static void join_rows(C* joined, const T* a, const T* b, const T* c, const T* d, int64_t n) {
    join_each(joined, n, [a, b, c, d](auto sum, auto at) -> decltype(sum) {
      if constexpr (std::is_same_v<T, C>) {
        return Op::combine(sum, Op::combine(Op::combine(at(a), at(b)), Op::combine(at(c), at(d))));
      } else {
        return Op::combine(Op::combine(Op::combine(Op::combine(sum, at(a)), at(b)), at(c)), at(d));
      }
    });
  }

  /// Combines rows [first, last) of T, each n columns wide; row(i) is the address of row i.
  template <class T, class Row>
  static void join_columns(C* joined, Row row, int64_t first, int64_t last, int64_t n) {
    const auto at = [&](int64_t i) { return reinterpret_cast<const T*>(row(i)); };
    int64_t i = first;
    for (; i + 4 <= last; i += 4) join_rows(joined, at(i), at(i + 1), at(i + 2), at(i + 3), n);
    for (; i < last; ++i) join_row(joined, at(i), n);
  }

  /// Combines rows [first, last) of the n columns that start at offset `base`.
  static void join_tile(C* joined, const ReducePlan& plan, const Source& source, int64_t base,
                        int64_t first, int64_t last, int64_t n) {
    std::fill_n(joined, n, Op::identity());
    const int64_t element = static_cast<int64_t>(source.element);
    const auto row = [&](int64_t i) {
      return source.data + (base + offset_at(i, plan.reduced)) * element;
    };
    if (source.direct) return join_columns<C>(joined, row, first, last, n);
    if constexpr (std::is_same_v<C, float>) {
      if (source.dtype == DType::kBF16) return join_columns<BFloat16>(joined, row, first, last, n);
    }
    alignas(32) C buffer[kTile];
    for (int64_t i = first; i < last; ++i) {
      source.read(row(i), 1, buffer, n);
      join_row(joined, buffer, n);
    }
  }

  static void run_columns(const ReducePlan& plan, const Source& source, Store store) {
    const int64_t width = plan.kept.back().size;
    const int64_t groups = plan.outputs / width;  // number of runs of adjacent results
    const int64_t tiles = (width + kTile - 1) / kTile;
    const int64_t blocks = (plan.count + kBlockRows - 1) / kBlockRows;
    Axes outer = plan.kept;
    outer.pop_back();
    std::unique_ptr<C[]> partial;
    if (blocks > 1)
      partial = std::make_unique_for_overwrite<C[]>(static_cast<size_t>(plan.outputs * blocks));

    const int64_t work = std::min(kBlockRows, plan.count) * std::min(kTile, width);
    parallel_for(
        0, groups * blocks * tiles, std::max<int64_t>(1, kGrain / work),
        [&](int64_t first, int64_t last) {
          alignas(32) C joined[kTile];
          Total totals[kTile];
          for (int64_t i = first; i < last; ++i) {
            const int64_t column = i % tiles * kTile;
            const int64_t block = i / tiles % blocks;
            const int64_t group = i / (tiles * blocks);
            const int64_t n = std::min(kTile, width - column);
            C* to = blocks > 1 ? partial.get() + (group * blocks + block) * width + column : joined;
            join_tile(to, plan, source, offset_at(group, outer) + column, block * kBlockRows,
                      std::min(plan.count, (block + 1) * kBlockRows), n);
            if (blocks > 1) continue;
            std::copy_n(joined, n, totals);
            store(group * width + column, totals, n);
          }
        });
    if (blocks == 1) return;

    parallel_for(0, groups * tiles,
                 std::max<int64_t>(1, kGrain / (blocks * std::min(kTile, width))),
                 [&](int64_t first, int64_t last) {
                   Total totals[kTile];
                   for (int64_t i = first; i < last; ++i) {
                     const int64_t column = i % tiles * kTile;
                     const int64_t group = i / tiles;
                     const int64_t n = std::min(kTile, width - column);
                     std::fill_n(totals, n, static_cast<Total>(Op::identity()));
                     for (int64_t block = 0; block < blocks; ++block) {
                       const C* from = partial.get() + (group * blocks + block) * width + column;
                       for (int64_t k = 0; k < n; ++k)
                         totals[k] = Op::combine(totals[k], static_cast<Total>(from[k]));
                     }
                     store(group * width + column, totals, n);
                   }
                 });
  }
};

}  // namespace lockstep::cpu

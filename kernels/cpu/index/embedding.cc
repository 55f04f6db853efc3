#include <algorithm>
#include <cstring>

#include "core/base/parallel.h"
#include "core/dispatch/kernel.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/index/index_lines.h"
#include "kernels/cpu/index/index_reader.h"

namespace lockstep::cpu {

namespace {

constexpr int64_t kGrainBytes = 65536;

void embedding(const Out& out, const In& weight, const In& indices, int64_t, bool, bool) {
  const std::vector<int64_t> rows = read_indices("embedding", indices, weight.size(0));
  if (out.numel == 0) return;
  const size_t bytes = static_cast<size_t>(weight.size(1)) * size_of(weight.dtype);
  const std::byte* from = weight.data<std::byte>();
  std::byte* to = out.data<std::byte>();
  const int64_t grain =
      std::max<int64_t>(1, kGrainBytes / std::max<int64_t>(static_cast<int64_t>(bytes), 1));
  parallel_for(0, static_cast<int64_t>(rows.size()), grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      std::memcpy(to + static_cast<size_t>(i) * bytes,
                  from + static_cast<size_t>(rows[static_cast<size_t>(i)]) * bytes, bytes);
    }
  });
}

/// Positions in the index tensor, grouped by the row they name and in order.
struct RowUses {
  RowUses(const std::vector<int64_t>& rows, int64_t num_rows, int64_t padding)
      : starts(static_cast<size_t>(num_rows) + 1) {
    for (const int64_t row : rows) {
      if (row != padding) ++starts[static_cast<size_t>(row) + 1];
    }
    for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
    positions.resize(static_cast<size_t>(starts.back()));
    std::vector<int64_t> next(starts.begin(), starts.end() - 1);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == padding) continue;
      positions[static_cast<size_t>(next[static_cast<size_t>(rows[i])]++)] =
          static_cast<int64_t>(i);
    }
  }
  /// Number of rows to write plus uses to read before `row`: the measure by which threads share
  /// work.
  int64_t work_before(int64_t row) const { return row + starts[static_cast<size_t>(row)]; }

  std::vector<int64_t> starts;  ///< start of each row's uses in `positions`
  std::vector<int64_t> positions;
};

/// Sums the gradients at `positions` in order; `sum` has the compute type.
template <class T>
void add_uses(ComputeType<T>* __restrict sum, const T* grad, int64_t width,
              const int64_t* positions, int64_t uses) {
  using C = ComputeType<T>;
  const auto row = [&](int64_t use) { return grad + positions[use] * width; };
  for (int64_t k = 0; k < width; ++k) sum[k] = static_cast<C>(row(0)[k]);
  int64_t use = 1;
  for (; use + 4 <= uses; use += 4) {  // four at a time, added in the same order
    const T *a = row(use), *b = row(use + 1), *c = row(use + 2), *d = row(use + 3);
    for (int64_t k = 0; k < width; ++k) {
      sum[k] = (((sum[k] + static_cast<C>(a[k])) + static_cast<C>(b[k])) + static_cast<C>(c[k])) +
               static_cast<C>(d[k]);
    }
  }
  for (; use < uses; ++use) {
    const T* a = row(use);
    for (int64_t k = 0; k < width; ++k) sum[k] += static_cast<C>(a[k]);
  }
}

/// What the sums of the uses become.
enum class UseSums { kRows, kAddedToRows };

/// Rows without a use become zeros, or stay as they are.
template <UseSums kSums>
void sum_uses(std::string_view op, const Out& out, const In& grad_output, const In& indices,
              int64_t padding_idx, bool scale_grad_by_freq) {
  constexpr bool kAdds = kSums == UseSums::kAddedToRows;
  const int64_t num_weights = out.size(0);
  const RowUses uses(read_indices(op, indices, num_weights), num_weights, padding_idx);
  const int64_t width = out.size(1);
  if (out.numel == 0) return;
  with_floating_type(out.dtype, [&]<class T>() {
    using C = ComputeType<T>;
    const T* grad = grad_output.data<T>();
    const int64_t grain =
        std::max<int64_t>(1, kGrainBytes / (width * static_cast<int64_t>(sizeof(T))));
    parallel_for(0, uses.work_before(num_weights), grain, [&](int64_t first, int64_t last) {
      const auto row_at = [&](int64_t work) {  // the first row that starts at or after `work`
        int64_t low = 0, high = num_weights;
        while (low < high) {
          const int64_t middle = (low + high) / 2;
          if (uses.work_before(middle) < work) {
            low = middle + 1;
          } else {
            high = middle;
          }
        }
        return low;
      };
      std::vector<C> buffer(!kAdds && std::is_same_v<T, C> ? 0 : static_cast<size_t>(width));
      const int64_t end = row_at(last);
      for (int64_t row = row_at(first); row < end; ++row) {
        T* to = out.data<T>() + row * width;
        const int64_t start = uses.starts[static_cast<size_t>(row)];
        const int64_t count = uses.starts[static_cast<size_t>(row) + 1] - start;
        if (count == 0) {
          if (!kAdds)
            std::memset(static_cast<void*>(to), 0, static_cast<size_t>(width) * sizeof(T));
          continue;
        }
        C* sum = kAdds ? buffer.data() : row_target<T>(to, buffer.data());
        add_uses<T>(sum, grad, width, uses.positions.data() + start, count);
        if (scale_grad_by_freq) {
          for (int64_t k = 0; k < width; ++k) sum[k] /= static_cast<C>(count);
        }
        if constexpr (kAdds) {
          // As an addition of rows that were stored: the sum is rounded first.
          for (int64_t k = 0; k < width; ++k) {
            to[k] = T(static_cast<C>(to[k]) + static_cast<C>(T(sum[k])));
          }
        } else {
          finish_row<T>(to, sum, width);
        }
      }
    });
  });
}

void embedding_dense_backward(const Out& out, const In& grad_output, const In& indices, int64_t,
                              int64_t padding_idx, bool scale_grad_by_freq) {
  sum_uses<UseSums::kRows>("embedding_dense_backward", out, grad_output, indices, padding_idx,
                           scale_grad_by_freq);
}

void embedding_gradient_added(const Out& out, const In& self, const In& grad_output,
                              const In& indices, int64_t padding_idx, bool scale_grad_by_freq) {
  start_from(out, self);
  sum_uses<UseSums::kAddedToRows>("_embedding_gradient_added", out, grad_output, indices,
                                  padding_idx, scale_grad_by_freq);
}

}  // namespace

LS_KERNEL(CPU, "embedding", embedding, Strides::kContiguous);
LS_KERNEL(CPU, "embedding_dense_backward", embedding_dense_backward, Strides::kContiguous);
LS_KERNEL(CPU, "_embedding_gradient_added", embedding_gradient_added, Strides::kContiguous);

}  // namespace lockstep::cpu

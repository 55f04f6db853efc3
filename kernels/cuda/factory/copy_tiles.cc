#include "kernels/cuda/factory/copy_tiles.h"

#include "core/tensor/shape.h"
#include "kernels/common/strided_plan.h"
#include "kernels/cuda/walk_plan.h"

namespace lockstep::cuda {

namespace {

/// Fewest rows or columns: with fewer, most of a tile would be empty.
constexpr int64_t kFewest = 16;

/// Returns the dimension along which `from` is contiguous, or 0 if there is none.
int row_dimension(const StridedPlan& plan, int64_t unit) {
  if (plan.strides[0][0] != unit || plan.strides[1][0] == unit || plan.sizes[0] < kFewest) return 0;
  for (int d = 1; d < plan.rank; ++d) {
    if (plan.strides[1][d] == unit && plan.sizes[d] >= kFewest) return d;
  }
  return 0;
}

/// True if units of `bytes` adjacent elements are aligned to that size in both tensors.
bool moves_in(const StridedPlan& plan, int row, int64_t unit, int64_t bytes) {
  const auto fits = [bytes](int64_t n) { return n % bytes == 0; };
  for (int o = 0; o < 2; ++o) {
    if (!fits(static_cast<int64_t>(reinterpret_cast<uintptr_t>(plan.address[o])))) return false;
    const int neighbours = o == 0 ? 0 : row;
    for (int d = 0; d < plan.rank; ++d) {
      if (d != neighbours && !fits(plan.strides[o][d])) return false;
    }
  }
  return fits(plan.sizes[0] * unit) && fits(plan.sizes[row] * unit);
}

}  // namespace

std::optional<CopyTiles> plan_tiles(const StridedPlan& plan, int64_t unit) {
  const int row = row_dimension(plan, unit);
  if (row == 0) return std::nullopt;
  // Bytes moved per thread and access, if aligned: wide accesses keep more bytes in flight.
  const int64_t pack = unit < 4 ? 4 : unit == 4 ? 8 : unit;
  CopyTiles tiles{};
  tiles.from = plan.address[1];
  tiles.to = plan.address[0];
  tiles.rows = plan.sizes[row];
  tiles.columns = plan.sizes[0];
  tiles.to_row = plan.strides[0][row];
  tiles.from_column = plan.strides[1][0];
  tiles.unit = static_cast<int32_t>(unit);
  tiles.width = moves_in(plan, row, unit, pack) ? static_cast<int32_t>(pack / unit) : 1;
  Dims sizes, to, from;  // of the other dimensions, outermost first
  for (int d = plan.rank - 1; d > 0; --d) {
    if (d == row) continue;
    sizes.push_back(plan.sizes[d]);
    to.push_back(plan.strides[0][d]);
    from.push_back(plan.strides[1][d]);
  }
  tiles.matrices = plan_walk<2>(sizes, {to, from});
  const int64_t side = CopyTiles::kSide * tiles.width;
  const int64_t across = (tiles.columns + side - 1) / side, down = (tiles.rows + side - 1) / side;
  tiles.tiles = count_elements(sizes) * across * down;
  tiles.across = AnyDivider(across, tiles.tiles);
  tiles.down = AnyDivider(down, tiles.tiles);
  return tiles;
}

}  // namespace lockstep::cuda

#include "kernels/cuda/index/grouping.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/base/check.h"
#include "kernels/cuda/index/grouping.fatbin.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/walk_plan.h"

namespace lockstep::cuda {

namespace {

constexpr unsigned kThreads = 256;

const Kernel kCount(kImage, "grouping_count");
const Kernel kScan(kImage, "grouping_scan");
const Kernel kMove(kImage, "grouping_move");
const Kernel kPlaces(kImage, "grouping_places");
constexpr int64_t kUnitsInBlock = 8;
constexpr int64_t kDigits = 256;
constexpr int64_t kMostUnits = 4096;
constexpr int64_t kSmallestUnit = 512;

/// Number of positions that one warp sorts per pass.
int64_t per_unit(int64_t count) {
  const int64_t even = (count + kMostUnits - 1) / kMostUnits;
  return std::max(kSmallestUnit, (even + 31) / 32 * 32);
}
int64_t units_of(int64_t count) { return (count + per_unit(count) - 1) / per_unit(count); }

/// Number of 32-bit words that a Grouping needs: two buffers of places, two of positions, and the
/// table.
int64_t words(int64_t count) { return 4 * count + kDigits * (units_of(count) + 1); }

constexpr int64_t kNever = std::numeric_limits<int64_t>::min();

}  // namespace

Grouping::Grouping(const char* op, int64_t count, int64_t num_places)
    : count_(count),
      num_places_(num_places),
      memory_(static_cast<size_t>(words(count)) * sizeof(uint32_t)) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  LS_CHECK(count < kMost && num_places < kMost, ShapeError,
           "[{}] too large on cuda: expected fewer than 2^32 - 1 indices and as many places that "
           "they name, got {} and {}. Index parts of the tensor.",
           op, count, num_places);
  auto* next = memory_.data<uint32_t>();
  for (uint32_t** buffer :
       {&place_buffers_[0], &place_buffers_[1], &position_buffers_[0], &position_buffers_[1]}) {
    *buffer = next;
    next += count;
  }
}

void Grouping::sort() {
  GroupPass pass{};
  pass.table = position_buffers_[1] + count_;
  pass.count = count_;
  pass.per_unit = per_unit(count_);
  pass.units = static_cast<uint32_t>(units_of(count_));
  pass.totals = pass.table + kDigits * pass.units;
  pass.none = static_cast<uint32_t>(num_places_);
  const unsigned blocks = static_cast<unsigned>((pass.units + kUnitsInBlock - 1) / kUnitsInBlock);
  const int bits = std::bit_width(pass.none);
  for (int shift = 0; shift == 0 || shift < bits; shift += 8) {
    pass.shift = static_cast<uint32_t>(shift);
    pass.places = place_buffers_[current_];
    pass.positions = shift == 0 ? nullptr : position_buffers_[current_];
    pass.places_out = place_buffers_[1 - current_];
    pass.positions_out = position_buffers_[1 - current_];
    launch(kCount, {.blocks = {blocks, 1, 1}, .threads = kThreads}, pass);
    launch(kScan, {.blocks = {kDigits / kUnitsInBlock, 1, 1}, .threads = kThreads}, pass);
    launch(kMove, {.blocks = {blocks, 1, 1}, .threads = kThreads}, pass);
    current_ = 1 - current_;
  }
}

IndexList index_list(const FaultKind& fault, const In& indices, int64_t size, bool wraps) {
  IndexList list{};
  list.data = indices.address;
  list.count = indices.numel;
  list.size = size;
  list.low = wraps ? -size : 0;
  list.fault = fault_place(fault);
  list.skipped = kNever;
  list.kind = indices.dtype == DType::kI32 ? IndexList::Kind::kI32 : IndexList::Kind::kI64;
  return list;
}

void add_index_places(const IndexPlaces& params) {
  if (params.count == 0) return;
  launch(kPlaces, {.blocks = {blocks_for(params.count, kThreads), 1, 1}, .threads = kThreads},
         params);
}

void read_places(uint32_t* places, const IndexList& list) {
  const Dims sizes{list.count}, itself{1}, nowhere{0};
  add_index_places({.list = list,
                    .positions = plan_walk<2>(sizes, {itself, nowhere}),
                    .count = list.count,
                    .stride = 1,
                    .places = places,
                    .is_first = true});
}

}  // namespace lockstep::cuda

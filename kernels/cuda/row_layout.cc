#include "kernels/cuda/row_layout.h"

#include <algorithm>

#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/loop_params.h"
#include "kernels/cuda/row_steps.h"

namespace lockstep::cuda {

namespace {

constexpr int64_t kWidest = 8;  ///< bytes of an element

/// Whether threads can compute both steps for an element without another thread's results.
bool are_together(const RowProgram& program, const RowProgram::Step& a, const RowProgram::Step& b) {
  return a.loop && b.loop && program.is_of_numbers(a) == program.is_of_numbers(b);
}

/// Which levels a slot is in use in, and whether it outlives the registers of the step's loop.
struct Life {
  int32_t maker = -1;  ///< step
  size_t first = 0;
  size_t last = 0;
  bool is_kept = false;
};

std::vector<Life> lives_of(const RowProgram& program, const std::vector<size_t>& level_of) {
  std::vector<Life> lives(program.slots.size());
  for (size_t i = 0; i < program.steps.size(); ++i) {
    for (const int32_t slot : program.steps[i].results) {
      if (slot == -1) continue;
      // A row step writes its results to memory, wanted or not.
      lives[static_cast<size_t>(slot)] = {static_cast<int32_t>(i), level_of[i], level_of[i],
                                          program.steps[i].row != nullptr};
    }
    for (const int32_t slot : program.steps[i].operands) {
      if (slot == -1) continue;
      Life& life = lives[static_cast<size_t>(slot)];
      if (life.maker == -1) continue;
      life.last = std::max(life.last, level_of[i]);
      life.is_kept = life.is_kept || program.steps[i].row || level_of[i] != life.first;
    }
  }
  return lives;
}

}  // namespace

RowLayout::RowLayout(const RowProgram& program) : cells(program.slots.size(), -1) {
  std::vector<size_t> level_of(program.steps.size());
  std::vector<int32_t> maker(program.slots.size(), -1);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const RowProgram::Step& step = program.steps[i];
    if (step.row) is_of_blocks = rows_of(step).is_of_blocks;
    for (const int32_t slot : step.operands) {
      const int32_t made = slot == -1 ? -1 : maker[static_cast<size_t>(slot)];
      if (made == -1) continue;
      const bool together = are_together(program, program.steps[static_cast<size_t>(made)], step);
      level_of[i] = std::max(level_of[i], level_of[static_cast<size_t>(made)] + (together ? 0 : 1));
    }
    for (const int32_t slot : step.results) {
      if (slot != -1) maker[static_cast<size_t>(slot)] = static_cast<int32_t>(i);
    }
    levels.resize(std::max(levels.size(), level_of[i] + 1));
    Level& level = levels[level_of[i]];
    (step.row                      ? level.rows
     : program.is_of_numbers(step) ? level.numbers
                                   : level.elements)
        .push_back(i);
  }
  // A row in shared memory serves others behind the level that reads it last: within one, some
  // threads are ahead.
  const std::vector<Life> lives = lives_of(program, level_of);
  std::vector<size_t> order(program.slots.size());
  for (size_t slot = 0; slot < order.size(); ++slot) order[slot] = slot;
  std::ranges::stable_sort(order, {}, [&](size_t slot) { return lives[slot].first; });
  std::vector<size_t> free_from;  // by row: the first level in which it may hold another
  for (const size_t slot : order) {
    const Life& life = lives[slot];
    if (life.maker == -1 || !life.is_kept || has_memory(program.slots[slot])) continue;
    if (program.slots[slot].place == RowProgram::Place::kNumber) {
      cells[slot] = numbers++;
      continue;
    }
    const auto unused =
        std::ranges::find_if(free_from, [&](size_t level) { return level <= life.first; });
    cells[slot] = static_cast<int32_t>(unused - free_from.begin());
    if (unused == free_from.end()) free_from.push_back(0);
    free_from[static_cast<size_t>(cells[slot])] = life.last + 1;
  }
  rows = static_cast<int32_t>(free_from.size());
}

int64_t RowLayout::row_bytes(const RowProgram& program) {
  int64_t widest = 1;
  for (const RowProgram::Slot& slot : program.slots) {
    widest = std::max(widest, static_cast<int64_t>(size_of(slot.dtype)));
  }
  return (program.length * widest + kRowUnit - 1) / kRowUnit * kRowUnit + kRowUnit;
}

int64_t RowLayout::bytes(const RowProgram& program) const {
  const int64_t all = rows * row_bytes(program) + numbers * kWidest;
  return (all + kRowUnit - 1) / kRowUnit * kRowUnit;
}

RowParamsShape::RowParamsShape(const RowProgram& program) {
  for (const RowProgram::Slot& slot : program.slots) addresses += has_memory(slot) ? 1 : 0;
  for (const RowProgram::Step& step : program.steps) {
    constants += step.row ? in_words(rows_of(step).count) : constant_bytes(loop_of(step));
  }
}

}  // namespace lockstep::cuda

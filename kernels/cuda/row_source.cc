#include "kernels/cuda/row_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "kernels/cuda/kept_rows.h"
#include "kernels/cuda/row_layout.h"
#include "kernels/cuda/row_prelude.h"
#include "kernels/cuda/step_text.h"

namespace lockstep::cuda {

namespace {

using Place = RowProgram::Place;

/// Writes the text. Names besides those of StepText: `m3` is where slot 3 has its row or number,
/// and `a3` are the elements of a row that a thread works on.
class RowText {
 public:
  RowText(const RowProgram& program, const RowLayout& layout)
      : program_(program), layout_(layout), steps_(0) {
    for (size_t slot = 0; slot < program.slots.size(); ++slot) add_slot(slot);
    for (const RowLayout::Level& level : layout_.levels) add_level(level);
  }

  std::string text() const {
    const RowParamsShape shape(program_);
    return fmt::format(R"({}
namespace lockstep::cuda {{
namespace {{
struct RowParams {{
  int64_t rows, length, row_bytes, packed;
  char* at[{}];
  alignas(8) unsigned char constants[{}];
}};
static_assert(sizeof(RowParams) == {});
}}  // namespace
}}  // namespace lockstep::cuda

LS_CUDA_KERNEL(lockstep_row_kernel, ::lockstep::cuda::RowParams, 256) {{
  using namespace lockstep::cuda;
  using Group = {};
  const int64_t n = p.length;
  char* const cells =
      dynamic_shared<char>() + group_index(Group()) * (({} * p.row_bytes + {} * 8 + 15) / 16 * 16);
{}{}  for (int64_t row = Group::first(); row < p.rows; row += Group::step()) {{
{}{}  }}
}}
)",
                       row_prelude(), shape.addresses, shape.constants, shape.bytes(),
                       layout_.is_of_blocks ? "BlockRows" : "WarpRows", layout_.rows,
                       layout_.numbers, before_, steps_.before(), places_, body_);
  }

 private:
  const RowProgram::Slot& slot_at(int32_t slot) const {
    return program_.slots[static_cast<size_t>(slot)];
  }
  std::string_view type_of(int32_t slot) const { return stored_type(slot_at(slot).dtype); }

  void add_slot(size_t at) {
    const RowProgram::Slot& slot = program_.slots[at];
    const size_t bytes = size_of(slot.dtype);
    if (has_memory(slot)) {
      const size_t address = address_++;
      if (slot.place == Place::kShared || slot.place == Place::kOne) {
        before_ += fmt::format("  char* const m{} = p.at[{}];\n", at, address);
      } else {
        places_ += fmt::format("    char* const m{} = p.at[{}] + row * {}{};\n", at, address, bytes,
                               slot.place == Place::kRow ? " * n" : "");
      }
    } else if (layout_.cells[at] != -1 && slot.place == Place::kRow) {
      places_ +=
          fmt::format("    char* const m{} = row_in(cells + {} * p.row_bytes, row, n * {});\n", at,
                      layout_.cells[at], bytes);
    } else if (layout_.cells[at] != -1) {
      places_ += fmt::format("    char* const m{} = cells + {} * p.row_bytes + {};\n", at,
                             layout_.rows, 8 * layout_.cells[at]);
    }
  }

  void add_level(const RowLayout::Level& level) {
    if (!level.elements.empty()) add_elements(level.elements);
    if (!level.numbers.empty()) add_numbers(level.numbers);
    for (const size_t i : level.rows) add_row(program_.steps[i]);
    body_ += "    meet(Group());\n";
  }

  /// Whether the step is the first of `steps` that reads the slot, which none of them makes.
  bool is_first_read(const std::vector<size_t>& steps, size_t step, int32_t slot) const {
    for (const size_t i : steps) {
      const RowProgram::Step& other = program_.steps[i];
      if (std::ranges::find(other.results, slot) != other.results.end()) return false;
      if (i == step) return true;
      if (std::ranges::find(other.operands, slot) != other.operands.end()) return false;
    }
    return true;
  }
  bool is_stored(int32_t slot) const {
    return has_memory(slot_at(slot)) || layout_.cells[static_cast<size_t>(slot)] != -1;
  }
  std::string number_read(int32_t slot) const {
    return fmt::format("const auto e{0} = *reinterpret_cast<const {1}*>(m{0});\n", slot,
                       type_of(slot));
  }

  /// Calls visit(slot) for what the steps read and do not make, once each.
  template <class Visit>
  void each_operand(const std::vector<size_t>& steps, const Visit& visit) const {
    std::vector<int32_t> seen;
    for (const size_t i : steps) {
      for (const int32_t slot : program_.steps[i].operands) {
        if (std::ranges::find(seen, slot) != seen.end()) continue;
        seen.push_back(slot);
        if (is_first_read(steps, i, slot)) visit(slot);
      }
    }
  }

  void add_elements(const std::vector<size_t>& steps) {
    std::string numbers, reads, elements, computed, moves, writes;
    each_operand(steps, [&](int32_t slot) {
      const Place place = slot_at(slot).place;
      if (place == Place::kNumber || place == Place::kOne) {
        numbers += "      " + number_read(slot);
      } else {
        reads += fmt::format("        const auto a{0} = load_pack<{1}>(m{0}, first, n, packed);\n",
                             slot, type_of(slot));
        elements += fmt::format("          const auto e{0} = a{0}.at[k];\n", slot);
      }
    });
    for (const size_t i : steps) {
      const RowProgram::Step& step = program_.steps[i];
      const int32_t result = step.results[0];
      computed += "          " + steps_.add(i, loop_of(step), step.operands, result);
      if (!is_stored(result)) continue;
      reads += fmt::format("        Pack<{}, kLoopPack> a{};\n", type_of(result), result);
      moves += fmt::format("          a{0}.at[k] = e{0};\n", result);
      writes += fmt::format("        store_pack(m{0}, first, n, packed, a{0});\n", result);
    }
    body_ += fmt::format(R"(    {{
      const bool packed = p.packed != 0;
{}      for (int64_t first = Group::thread() * kLoopPack; first < n;
           first += Group::kThreads * kLoopPack) {{
{}#pragma unroll
        for (int k = 0; k < kLoopPack; ++k) {{
{}{}{}        }}
{}      }}
    }}
)",
                         numbers, reads, elements, computed, moves, writes);
  }

  void add_numbers(const std::vector<size_t>& steps) {
    body_ += "    if (Group::thread() == 0) {\n";
    each_operand(steps, [&](int32_t slot) { body_ += "      " + number_read(slot); });
    for (const size_t i : steps) {
      const RowProgram::Step& step = program_.steps[i];
      const int32_t result = step.results[0];
      body_ += "      " + steps_.add(i, loop_of(step), step.operands, result);
      if (!is_stored(result)) continue;
      body_ += fmt::format("      *reinterpret_cast<{}*>(m{}) = e{};\n", type_of(result), result,
                           result);
    }
    body_ += "    }\n";
  }

  void add_row(const RowProgram::Step& step) {
    const KeptRows& rows = rows_of(step);
    body_ += fmt::format("    {}(constant_at<{}>(p.constants + {}), n", rows.function,
                         rows.arguments, steps_.add_constant(rows.count));
    const auto add = [&](int32_t slot) {
      body_ += slot == -1 ? ", nullptr" : fmt::format(", m{}", slot);
    };
    for (const int32_t slot : step.results) add(slot);
    for (const int32_t slot : step.operands) add(slot);
    body_ += ");\n";
  }

  const RowProgram& program_;
  const RowLayout& layout_;
  StepText steps_;
  size_t address_ = 0;
  std::string before_, places_, body_;
};

}  // namespace

std::string row_source(const RowProgram& program, const RowLayout& layout) {
  return RowText(program, layout).text();
}

}  // namespace lockstep::cuda

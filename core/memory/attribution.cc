#include "core/memory/attribution.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/check.h"
#include "core/base/function_ref.h"

namespace lockstep {

namespace {

std::vector<MemoryShare> shares(std::span<const BlockInfo> blocks,
                                FunctionRef<std::string(const BlockInfo&)> name_of) {
  std::map<std::string, MemoryShare> by_name;
  for (const BlockInfo& block : blocks) {
    if (block.state == BlockInfo::State::kInactive) continue;
    MemoryShare& share = by_name[name_of(block)];
    share.bytes += static_cast<int64_t>(block.size);
    ++share.blocks;
  }
  std::vector<MemoryShare> result;
  for (auto& [name, share] : by_name) {
    share.name = name;
    result.push_back(std::move(share));
  }
  std::ranges::stable_sort(result, std::greater(), &MemoryShare::bytes);
  return result;
}

std::string row(const MemoryShare& share, int64_t total) {
  const double part =
      total == 0 ? 0 : 100 * static_cast<double>(share.bytes) / static_cast<double>(total);
  return fmt::format("{:>16} {:5.1f} % {:>8}  {}\n", share.bytes, part, share.blocks, share.name);
}

}  // namespace

std::vector<MemoryShare> memory_by_operator(std::span<const BlockInfo> blocks) {
  return shares(blocks, [](const BlockInfo& block) {
    return std::string(block.context.op != nullptr ? block.context.op : "outside operators");
  });
}

std::vector<MemoryShare> memory_by_module(std::span<const BlockInfo> blocks) {
  return shares(blocks, [](const BlockInfo& block) {
    return block.context.module.empty() ? std::string("outside modules") : block.context.module;
  });
}

std::string memory_table(std::span<const MemoryShare> shares, size_t most_rows) {
  int64_t total = 0;
  for (const MemoryShare& share : shares) total += share.bytes;
  std::string table = "           bytes   share   blocks\n";
  MemoryShare rest;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (i < most_rows) {
      table += row(shares[i], total);
    } else {
      rest.bytes += shares[i].bytes;
      rest.blocks += shares[i].blocks;
    }
  }
  if (shares.size() > most_rows) {
    rest.name = fmt::format("{} others", shares.size() - most_rows);
    table += row(rest, total);
  }
  return table;
}

}  // namespace lockstep

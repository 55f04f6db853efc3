#include "dist/group/agreement.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <map>
#include <sstream>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/ops/factory/factory.h"
#include "dist/group/failure.h"
#include "dist/rendezvous/rank_list.h"
#include "dist/rendezvous/text_difference.h"

namespace lockstep::dist {

namespace {

/// Returns the value of each name, in the order of the lines.
std::vector<std::pair<std::string, std::string>> named_values(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = std::min(line.find(": "), line.size());
    values.emplace_back(line.substr(0, colon), line.substr(std::min(colon + 2, line.size())));
  }
  return values;
}

}  // namespace

void require_alike(const char* op, int self, const std::vector<std::string>& texts) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> by_rank;
  for (const std::string& text : texts) {
    std::map<std::string, std::string>& values = by_rank.emplace_back();
    for (auto& [name, value] : named_values(text)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
      values[name] = value;
    }
  }
  for (const std::string& name : names) {
    // In the order of the ranks that have them first.
    std::vector<std::pair<std::string, std::vector<int>>> versions;
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      const auto found = by_rank[rank].find(name);
      const std::string value = found == by_rank[rank].end() ? "not told" : found->second;
      auto version =
          std::ranges::find(versions, value, [](const auto& each) { return each.first; });
      if (version == versions.end()) version = versions.insert(version, {value, {}});
      version->second.push_back(static_cast<int>(rank));
    }
    if (versions.size() < 2) continue;
    std::string text;
    for (const auto& [value, ranks] : versions) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", rank_list(ranks),
                          value.empty() ? "none" : value);
    }
    throw CommonMismatchError(
        fmt::format(
            "[{}] ranks differ in {}: {}. Start all ranks with the same program and variables.", op,
            name, text),
        self, static_cast<int>(texts.size()));
  }
}

std::vector<std::string> all_gather_texts(ProcessGroup& group, const std::string& text,
                                          const CollectiveOptions& options) {
  const auto size = static_cast<size_t>(group.size());
  const Tensor length = empty({1}, {DType::kI64, kCPU}).fill_(static_cast<int64_t>(text.size()));
  const Tensor lengths = empty({group.size()}, {DType::kI64, kCPU});
  group.all_gather(lengths, length, options).wait();
  const auto* counts = lengths.data<int64_t>();
  const int64_t longest = *std::max_element(counts, counts + size);
  const Tensor own = empty({longest}, {DType::kU8, kCPU}).zero_();
  if (!text.empty()) std::memcpy(own.data(), text.data(), text.size());
  const Tensor all = empty({group.size() * longest}, {DType::kU8, kCPU});
  group.all_gather(all, own, options).wait();
  std::vector<std::string> texts;
  for (size_t rank = 0; rank < size; ++rank) {
    texts.emplace_back(static_cast<const char*>(all.data()) + static_cast<int64_t>(rank) * longest,
                       static_cast<size_t>(counts[rank]));
  }
  return texts;
}

void require_same(ProcessGroup& group, const char* op, const char* what, const std::string& text,
                  const CollectiveOptions& options) {
  if (group.plans()) return;  // one process stands for all ranks, of which there may be very many
  const std::vector<std::string> texts = all_gather_texts(group, text, options);
  for (size_t rank = 1; rank < texts.size(); ++rank) {
    if (texts[rank] == texts[0]) continue;
    const LineDifference lines = first_difference(texts[0], texts[rank]);
    finish_together(group);
    throw CommonMismatchError(
        fmt::format("[{}] rank {} has another {} than rank 0: expected \"{}\", got \"{}\". Start "
                    "all ranks alike.",
                    op, rank, what, lines.first, lines.second),
        group.rank(), group.size());
  }
}

CollectiveOptions at_start(const ProcessGroup& group) {
  constexpr std::chrono::milliseconds kStartMayTake = std::chrono::minutes(10);
  return {.timeout = std::max(group.timeout(), kStartMayTake)};
}

void largest_of(ProcessGroup& group, std::span<double> values) {
  const Tensor all = empty({static_cast<int64_t>(values.size())}, {DType::kF64, kCPU});
  std::ranges::copy(values, all.data<double>());
  group.all_reduce(all, {ReduceOp::kMax}).wait();
  std::copy_n(all.data<double>(), values.size(), values.begin());
}

std::vector<std::vector<double>> all_gather_values(ProcessGroup& group,
                                                   std::span<const double> values) {
  const auto count = static_cast<int64_t>(values.size());
  const Tensor own = empty({count}, {DType::kF64, kCPU});
  std::ranges::copy(values, own.data<double>());
  const Tensor all = empty({group.size() * count}, {DType::kF64, kCPU});
  group.all_gather(all, own).wait();
  std::vector<std::vector<double>> result;
  for (int rank = 0; rank < group.size(); ++rank) {
    const double* const first = all.data<double>() + rank * count;
    result.emplace_back(first, first + count);
  }
  return result;
}

void broadcast_values(ProcessGroup& group, std::span<const Tensor> tensors, int root) {
  const NoGradGuard no_grad;
  std::vector<Tensor> dense;
  std::vector<Device> devices;
  for (const Tensor& tensor : tensors) {
    dense.push_back(tensor.detach().contiguous());
    const bool known = std::ranges::find(devices, tensor.device()) != devices.end();
    if (!known) devices.push_back(tensor.device());
  }
  for (const Device& device : devices) {
    std::vector<Tensor> here;
    std::ranges::copy_if(dense, std::back_inserter(here),
                         [&](const Tensor& tensor) { return tensor.device() == device; });
    group.broadcast(here, root).wait();
  }
  if (group.rank() == root) return;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i].is_contiguous()) tensors[i].detach().copy_(dense[i]);
  }
}

}  // namespace lockstep::dist

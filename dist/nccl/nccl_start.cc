#include "dist/nccl/nccl_start.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "core/base/check.h"
#include "dist/group/agreement.h"

namespace lockstep::dist {
namespace {

/// Data that each rank sends to the others at the start.
struct Introduction {
  std::string identity;
  std::string description;
  std::string version;
  std::string id;     ///< of those that give one: the ncclUniqueId, 128 bytes
  std::string error;  ///< of those: why it has no id
};

std::string pack(const Introduction& one) {
  std::string text;
  for (const std::string* part :
       {&one.identity, &one.description, &one.version, &one.id, &one.error}) {
    const auto size = static_cast<uint32_t>(part->size());
    text.append(reinterpret_cast<const char*>(&size), sizeof size);
    text += *part;
  }
  return text;
}

Introduction unpack(const std::string& text) {
  Introduction one;
  size_t at = 0;
  for (std::string* part : {&one.identity, &one.description, &one.version, &one.id, &one.error}) {
    uint32_t size = 0;
    LS_ASSERT(at + sizeof size <= text.size());
    std::memcpy(&size, text.data() + at, sizeof size);
    at += sizeof size;
    LS_ASSERT(at + size <= text.size());
    *part = text.substr(at, size);
    at += size;
  }
  return one;
}

std::string message_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return thrown.what();
  }
}

/// Returns an error text if the ranks do not fit each other, else "".
std::string find_fault(const std::vector<Introduction>& all) {
  for (const Introduction& one : all) {
    if (!one.error.empty()) return one.error;
  }
  std::map<std::string, size_t> first;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto [found, is_new] = first.emplace(all[rank].identity, rank);
    if (!is_new) {
      return fmt::format(
          "[nccl] ranks {} and {} both use {}: NCCL needs a device of its own for each rank. Start "
          "no more ranks on a host than it has GPUs, and give each its own.",
          found->second, rank, all[rank].description);
    }
    if (all[rank].version != all[0].version) {
      return fmt::format(
          "[nccl] rank {} has NCCL {}, rank 0 has {}: expected one version on all ranks. Install "
          "the same one on all hosts.",
          rank, all[rank].version, all[0].version);
    }
  }
  return {};
}

}  // namespace

std::vector<nccl::UniqueId> exchange_nccl_start(ProcessGroup& group, const NcclLibrary& library,
                                                const NcclDevice& device, int ranks_of_an_id,
                                                const CollectiveOptions& options) {
  nccl::UniqueId id{};
  const bool gives_id =
      group.rank() == 0 || (library.can_scale() && group.rank() % ranks_of_an_id == 0);
  Introduction own{
      device.identity(), device.description(), nccl_version_text(library.version), {}, {}};
  if (gives_id) {
    const nccl::Result result = library.functions.ncclGetUniqueId(&id);
    if (result == nccl::Result::kSuccess) {
      own.id.assign(id.bytes, sizeof id.bytes);
    } else {
      own.error = message_of(nccl_error(library, result, "ncclGetUniqueId", nullptr));
    }
  }
  std::vector<Introduction> all;
  for (const std::string& text : all_gather_texts(group, pack(own), options)) {
    all.push_back(unpack(text));
  }
  if (const std::string fault = find_fault(all); !fault.empty()) {
    finish_together(group);
    throw BackendError(fault);
  }
  std::vector<nccl::UniqueId> ids;
  for (const Introduction& one : all) {
    if (one.id.empty()) continue;
    LS_ASSERT(one.id.size() == sizeof id.bytes);
    std::memcpy(id.bytes, one.id.data(), sizeof id.bytes);
    ids.push_back(id);
  }
  return ids;
}

void compare_nccl_calls(ProcessGroup& group, const std::string& op, const std::string& call,
                        const CollectiveOptions& options) {
  const std::vector<std::string> all = all_gather_texts(group, call, options);
  const auto other =
      std::ranges::find_if(all, [&](const std::string& each) { return each != all[0]; });
  if (other == all.end()) return;
  finish_together(group);
  throw MismatchError(fmt::format(
      "[{}] ranks do not agree on an operation of group {}: rank 0 called {}, rank {} called {}. "
      "All ranks must call the same operations in the same order.",
      op, group.name(), all[0], other - all.begin(), *other));
}

}  // namespace lockstep::dist

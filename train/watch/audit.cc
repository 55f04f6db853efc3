#include "train/watch/audit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/content_hash.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/copy.h"
#include "dist/group/agreement.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::train {
namespace {

constexpr std::string_view kFailed = "!";  // begins the text of a rank that cannot compute it again

std::string pack(const AuditHashes& hashes) {
  return fmt::format("{} {:x}", dist::host_name(), fmt::join(hashes, " "));
}

/// What a rank told: "HOST HASH HASH ...".
struct Told {
  std::string host;
  AuditHashes hashes;  ///< empty of a rank that computed nothing
};

Told unpack(const std::string& text) {
  Told told;
  size_t end = text.find(' ');
  told.host = text.substr(0, end);
  while (end < text.size()) {
    const size_t first = end + 1;
    end = std::min(text.find(' ', first), text.size());
    uint64_t hash = 0;
    if (std::from_chars(text.data() + first, text.data() + end, hash, 16).ec == std::errc{}) {
      told.hashes.push_back(hash);
    }
  }
  return told;
}

/// Calls `again` if this rank is to, and returns what every rank told.
std::vector<Told> gather(dist::ProcessGroup& group, bool computes,
                         const std::function<AuditHashes()>& again) {
  std::string text = dist::host_name();
  if (computes) {
    try {
      text = pack(again());
    } catch (const std::exception& error) {
      text = fmt::format("{}{}", kFailed, error.what());  // the others wait for this rank
    }
  }
  std::vector<Told> told;
  const std::vector<std::string> texts = dist::all_gather_texts(group, text);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (texts[rank].starts_with(kFailed)) {
      dist::finish_together(group);
      throw DeviceError(fmt::format("[audit] rank {} cannot compute a micro-batch again: {}", rank,
                                    texts[rank].substr(kFailed.size())));
    }
    told.push_back(unpack(texts[rank]));
  }
  return told;
}

/// The first of the loss and the gradients in which the two differ. Gradients come in the order of
/// backward, which begins with the last parameter: what is wrong there is wrong in those before,
/// too.
std::string first_difference(const AuditHashes& a, const AuditHashes& b,
                             const std::vector<dist::NamedTensor>& parameters) {
  if (a[0] != b[0]) return "loss";
  for (size_t i = parameters.size(); i > 0; --i) {
    if (a[i] != b[i]) return "gradient of " + parameters[i - 1].name;
  }
  return "";
}

}  // namespace

Audit audit_of(int64_t number, std::span<const MicroBatches> ranks) {
  const auto size = std::ssize(ranks);
  const auto rank_at = [&](int64_t offset) { return static_cast<int>((number + offset) % size); };
  const MicroBatches& audited = ranks[static_cast<size_t>(rank_at(0))];
  return {.audited = rank_at(0),
          .auditor = rank_at(1),
          .witness = rank_at(2),
          .micro_batch = audited.first + number / size % audited.count};
}

uint64_t audit_hash(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  const NoGradGuard no_grad;
  const Tensor here = tensor.detach().to(kCPU).contiguous();
  return ContentHasher()
      .append({static_cast<const std::byte*>(here.data()), here.nbytes()})
      .result()
      .low;
}

GradientHashes::GradientHashes(const std::vector<dist::NamedTensor>& parameters)
    : hashes_(parameters.size() + 1), copies_(parameters.size()) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    hooks_.push_back(register_hook(parameters[i].tensor, [this, i](const Tensor& gradient) {
      if (is_asynchronous(gradient.device().type)) {
        const NoGradGuard no_grad;
        copies_[i] = gradient.clone();
      } else {
        hashes_[i + 1] = audit_hash(gradient);  // its memory is written again
      }
      return Tensor();
    }));
  }
}

void GradientHashes::stop() {
  for (HookHandle& each : hooks_) each.remove();
}

AuditHashes GradientHashes::with_loss(const Tensor& loss) const {
  AuditHashes hashes = hashes_;
  hashes[0] = audit_hash(loss);
  for (size_t i = 0; i < copies_.size(); ++i) {
    if (copies_[i].defined()) hashes[i + 1] = audit_hash(copies_[i]);
  }
  return hashes;
}

std::string compare_audit(dist::ProcessGroup& group, const Audit& audit,
                          const std::vector<dist::NamedTensor>& parameters, const AuditHashes& own,
                          const std::function<AuditHashes()>& again) {
  const auto hashes_of = [&](const std::vector<Told>& told, int rank) -> const AuditHashes& {
    const AuditHashes& hashes = told[static_cast<size_t>(rank)].hashes;
    LS_ASSERT(hashes.size() == parameters.size() + 1);
    return hashes;
  };
  const bool is_audited = group.rank() == audit.audited;
  const std::vector<Told> told = gather(group, is_audited || group.rank() == audit.auditor,
                                        [&] { return is_audited ? own : again(); });
  const AuditHashes& first = hashes_of(told, audit.audited);
  const AuditHashes& second = hashes_of(told, audit.auditor);
  const std::string what = first_difference(first, second, parameters);
  if (what.empty()) return "";

  const std::vector<Told> more = gather(group, group.rank() == audit.witness, again);
  const AuditHashes& third = hashes_of(more, audit.witness);
  const auto named = [&](int rank) {
    return fmt::format("rank {} ({})", rank, told[static_cast<size_t>(rank)].host);
  };
  const std::string found =
      fmt::format("micro-batch {}: the {} that {} computed is not that of {}", audit.micro_batch,
                  what, named(audit.audited), named(audit.auditor));
  const bool by_itself = audit.witness == audit.audited;  // there is no third rank
  if (third == second) {
    return fmt::format("{}. {} is wrong: {} the auditor's", found, named(audit.audited),
                       by_itself ? "what it computes now is"
                                 : fmt::format("what {} computes is", named(audit.witness)));
  }
  if (third == first && !by_itself) {
    return fmt::format("{}. {} is wrong: what {} computes is the audited rank's", found,
                       named(audit.auditor), named(audit.witness));
  }
  return by_itself
             ? found + ". Two ranks cannot tell which of them is wrong"
             : fmt::format("{}, and what {} computes is neither", found, named(audit.witness));
}

void require_equal_values(dist::ProcessGroup& group,
                          const std::vector<dist::NamedTensor>& parameters) {
  AuditHashes own;
  for (const dist::NamedTensor& each : parameters) own.push_back(audit_hash(each.tensor));
  const std::vector<Told> told = gather(group, true, [&] { return own; });
  std::map<AuditHashes, std::vector<int>> ranks_with;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    ranks_with[told[rank].hashes].push_back(static_cast<int>(rank));
  }
  if (ranks_with.size() == 1) return;
  const auto usual =
      std::ranges::max_element(ranks_with, {}, [](const auto& each) { return each.second.size(); });
  std::vector<std::string> others;
  std::string where;
  for (size_t rank = 0; rank < told.size(); ++rank) {
    const AuditHashes& hashes = told[rank].hashes;
    if (hashes == usual->first) continue;
    others.push_back(fmt::format("rank {} ({})", rank, told[rank].host));
    const auto differs = std::ranges::mismatch(hashes, usual->first).in1 - hashes.begin();
    if (where.empty()) where = parameters[static_cast<size_t>(differs)].name;
  }
  // With as many on both sides none is the usual one.
  const bool undecided = 2 * usual->second.size() <= told.size();
  dist::finish_together(group);
  throw DeviceError(fmt::format(
      "[audit] weights differ between ranks that have copies of one model: expected the same on "
      "all, "
      "got others on {} than on {} {}, first in {}{}. Go on from a checkpoint that is older than "
      "the "
      "last audit that found nothing, without the host that is at fault.",
      fmt::join(others, ", "), usual->second.size() == 1 ? "rank" : "ranks",
      fmt::join(usual->second, ", "), where, undecided ? "; it is open which are right" : ""));
}

}  // namespace lockstep::train

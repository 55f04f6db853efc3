#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autograd/hooks.h"
#include "dist/ddp/reducer.h"

namespace lockstep::train {

/// The micro-batches of a step that one rank computes, numbered over all ranks.
struct MicroBatches {
  int64_t first = 0;
  int64_t count = 1;
};

/// Which micro-batch of a step is computed once more, and by whom.
struct Audit {
  int audited = 0;          ///< the rank whose micro-batch it is
  int auditor = 0;          ///< computes it again
  int witness = 0;          ///< decides where the two differ; with two ranks the audited one
  int64_t micro_batch = 0;  ///< from 0, over all ranks
  friend bool operator==(const Audit&, const Audit&) = default;
};

/// The audit `number`, from 0, of a run: ranks in turn, and the micro-batches of each in turn.
/// `ranks`: what each rank computes, of two or more.
Audit audit_of(int64_t number, std::span<const MicroBatches> ranks);

/// Hashes of what one micro-batch comes to: of its loss, then of its gradient for each parameter, 0
/// where there is none.
using AuditHashes = std::vector<uint64_t>;

/// The hash (XXH3-64) of a tensor's bytes in row-major order, 0 of an undefined one. Waits for its
/// device.
uint64_t audit_hash(const Tensor& tensor);

/// Hashes the gradient of each parameter as a backward brings it, before it is added to others.
/// Those of asynchronous devices are copied there, so that backward waits for nothing. Not
/// thread-safe beside that backward.
class GradientHashes {
 public:
  explicit GradientHashes(const std::vector<dist::NamedTensor>& parameters);
  ~GradientHashes() { stop(); }
  GradientHashes(const GradientHashes&) = delete;
  GradientHashes& operator=(const GradientHashes&) = delete;

  /// Leaves later backwards alone.
  void stop();
  /// Waits for the device.
  AuditHashes with_loss(const Tensor& loss) const;

 private:
  AuditHashes hashes_;
  std::vector<Tensor> copies_;  ///< where hashes_ has none yet
  std::vector<HookHandle> hooks_;
};

/// Compares what the audited rank computed with what `again`, called on the auditor and where they
/// differ on the witness, returns. `own` are the audited rank's hashes, ignored on the others.
/// Returns what differs and who is wrong, the same text on all ranks; empty if nothing differs.
/// `parameters` names them. Collective. Throws DeviceError on all ranks if `again` throws on one.
std::string compare_audit(dist::ProcessGroup& group, const Audit& audit,
                          const std::vector<dist::NamedTensor>& parameters, const AuditHashes& own,
                          const std::function<AuditHashes()>& again);

/// Throws DeviceError on all ranks if the values of `parameters` are not the same on all of them,
/// naming the ranks that differ from most others and the first parameter. Collective.
void require_equal_values(dist::ProcessGroup& group,
                          const std::vector<dist::NamedTensor>& parameters);

}  // namespace lockstep::train

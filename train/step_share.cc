#include "train/step_share.h"

#include <algorithm>

#include "configs/train.pb.h"
#include "core/base/check.h"
#include "dist/group/process_group.h"

namespace lockstep::train {

StepShare share_of_deal(const dist::LeafDeal& deal, int rank, int64_t micro_batches,
                        int64_t micro_batch_size) {
  LS_ASSERT(deal.leaves() > 0 && micro_batches % deal.leaves() == 0);
  const int64_t of_leaf = micro_batches / deal.leaves();
  const dist::LeafRange leaves = deal.of(rank);
  StepShare share;
  share.micro_batch_size = micro_batch_size;
  share.leaves = leaves.size();
  share.first_leaf = leaves.first;
  share.micro_batches = leaves.size() * of_leaf;
  share.first_micro_batch = leaves.first * of_leaf;
  share.first_sample = share.first_micro_batch * share.micro_batch_size;
  return share;
}

StepShare share_of_step(const config::TrainConfig& train, int64_t rank, int64_t size) {
  LS_CHECK(size >= 1 && rank >= 0 && rank < size, ConfigError,
           "[train] expected a rank of 0 to {}, got {}.", size - 1, rank);
  if (size <= train.leaves()) {
    return share_of_deal(dist::LeafDeal::even(train.leaves(), static_cast<int>(size)),
                         static_cast<int>(rank), train.batch_size() / train.micro_batch_size(),
                         train.micro_batch_size());
  }
  StepShare share;
  share.micro_batch_size = train.micro_batch_size();
  LS_CHECK(train.batch_size() % size == 0, ConfigError,
           "[train] {} ranks cannot share a step: expected a divisor of train.batch_size, which is "
           "{}, or at most train.leaves, which is {}.",
           size, train.batch_size(), train.leaves());
  const int64_t samples = train.batch_size() / size;
  if (samples % share.micro_batch_size != 0) {
    // The largest micro-batch size that divides the share.
    share.micro_batch_size = std::min(share.micro_batch_size, samples);
    while (samples % share.micro_batch_size != 0) --share.micro_batch_size;
  }
  share.micro_batches = samples / share.micro_batch_size;
  share.first_sample = samples * rank;
  share.first_micro_batch = share.first_sample / share.micro_batch_size;
  return share;
}

bool has_even_shares(const config::TrainConfig& train, int64_t size) {
  const int64_t first = share_of_step(train, 0, size).micro_batches;
  for (int64_t rank = 1; rank < size; ++rank) {
    if (share_of_step(train, rank, size).micro_batches != first) return false;
  }
  return true;
}

StepShare share_of_step(const config::TrainConfig& train, const dist::ProcessGroup* group) {
  return group == nullptr ? share_of_step(train, 0, 1)
                          : share_of_step(train, group->rank(), group->size());
}

}  // namespace lockstep::train

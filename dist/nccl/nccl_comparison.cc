#include "dist/nccl/nccl_comparison.h"

#include <algorithm>
#include <utility>

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Time between two looks at the recorder.
constexpr milliseconds kBetweenLooks{250};
/// Time that an operation is pending before other ranks are asked. Nearly all end sooner.
constexpr seconds kLate{1};
constexpr seconds kMostBetweenQuestions{8};
/// Most operations of a coalesced call that are compared.
constexpr size_t kMostOperations = 256;

}  // namespace

std::vector<int> ranks_to_compare(int rank, int size) {
  constexpr int kAskAll = 16;
  constexpr int kNeighbours = 8;
  std::vector<int> ranks;
  for (int distance = 1; distance < size;
       distance += size <= kAskAll || distance < kNeighbours ? 1 : distance) {
    ranks.push_back((rank + distance) % size);
  }
  return ranks;
}

NcclComparison::NcclComparison(std::shared_ptr<Communicator> communicator, uint64_t group,
                               const std::vector<int>& ranks, int rank)
    : communicator_(std::move(communicator)), group_(group) {
  for (const int other : ranks_to_compare(rank, static_cast<int>(ranks.size()))) {
    others_.push_back(ranks[static_cast<size_t>(other)]);
  }
}

void NcclComparison::look(Clock::time_point now) {
  if (others_.empty() || now < next_look_) return;
  next_look_ = now + kBetweenLooks;
  const FlightRecorder& recorder = communicator_->recorder();
  const std::vector<FlightRecord> oldest = recorder.unfinished(group_, 1);
  if (oldest.empty()) {
    oldest_.reset();
    return;
  }
  const uint64_t sequence = oldest.front().signature.sequence;
  if (oldest_ != sequence) {
    oldest_ = sequence;
    between_questions_ = kLate;
    next_question_ = now + kLate;
  }
  if (now < next_question_) return;
  between_questions_ = std::min<Clock::duration>(2 * between_questions_, kMostBetweenQuestions);
  next_question_ = now + between_questions_;
  // The operations of a coalesced call follow each other.
  const size_t most = std::min<size_t>(oldest.front().tensors, kMostOperations);
  for (const FlightRecord& record : recorder.unfinished(group_, std::max<size_t>(most, 1))) {
    communicator_->compare(record.signature, others_);
  }
}

}  // namespace lockstep::dist

#include "dist/nccl/nccl_tree.h"

#include <iterator>

#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/view/view.h"
#include "dist/collectives/leaf_tree.h"

namespace lockstep::dist {
namespace {

Operation message(OpKind kind, const Tensor& tensor, int peer) {
  Operation operation;
  operation.kind = kind;
  operation.dtype = tensor.dtype();
  operation.root = peer;
  operation.count = tensor.numel();
  operation.input = operation.output = tensor.data();
  return operation;
}

}  // namespace

NcclTree::NcclTree(const Operation& operation, const Tensor& output, const Tensor& sums, int rank,
                   int size)
    : operation_(operation), rank_(rank), size_(size), output_(output.view({operation.count})) {
  for (int64_t row = 0; row < sums.size(0); ++row) {
    sums_.push_back(select(sums, 0, row).view({total()}));
  }
  rows_.push_back(0);
  for (int each = 0; each < size; ++each) {
    rows_.push_back(rows_.back() + std::ssize(subtrees(operation.deal.of(each))));
  }
  received_ = empty({rows_.back(), part(rank)}, {output.dtype(), output.device()});
}

std::vector<Tensor> NcclTree::own_sums(int rank) const {
  std::vector<Tensor> result;
  for (const Tensor& sum : sums_) {
    result.push_back(slice(sum, 0, first(rank), first(rank) + part(rank)));
  }
  return result;
}

std::vector<Operation> NcclTree::exchange() const {
  std::vector<Operation> operations;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    for (const Tensor& sum : own_sums(peer)) {
      operations.push_back(message(OpKind::kSend, sum, peer));
    }
    const auto index = static_cast<size_t>(peer);
    for (int64_t row = rows_[index]; row < rows_[index + 1]; ++row) {
      operations.push_back(message(OpKind::kReceive, select(received_, 0, row), peer));
    }
  }
  return operations;
}

void NcclTree::add_up() const {
  if (part(rank_) == 0) return;
  struct Sum {
    Tensor value;
    bool may_change = false;
  };
  const std::vector<uint8_t> joins = joins_over_ranks(operation_.deal);
  const std::vector<Tensor> own = own_sums(rank_);
  const int64_t first_own = rows_[static_cast<size_t>(rank_)];
  std::vector<Sum> stack;
  for (int64_t row = 0; row < rows_.back(); ++row) {
    const bool is_own = row >= first_own && row < first_own + static_cast<int64_t>(own.size());
    if (is_own) {
      stack.push_back({own[static_cast<size_t>(row - first_own)], false});
    } else {
      stack.push_back({select(received_, 0, row), true});
    }
    for (int join = joins[static_cast<size_t>(row)]; join > 0; --join) {
      const Sum right = std::move(stack.back());
      stack.pop_back();
      Sum& left = stack.back();
      if (left.may_change) {
        left.value.add_(right.value);
      } else {
        left = {add(left.value, right.value), true};
      }
    }
  }
  const Tensor result =
      scatters() ? output_ : slice(output_, 0, first(rank_), first(rank_) + part(rank_));
  if (result.data() != stack.front().value.data()) result.copy_(stack.front().value);
}

std::vector<Operation> NcclTree::gather() const {
  std::vector<Operation> operations;
  for (int root = 0; root < size_ && size_ > 1 && !scatters(); ++root) {
    const Tensor whole = slice(output_, 0, first(root), first(root) + part(root));
    operations.push_back(message(OpKind::kBroadcast, whole, root));
  }
  return operations;
}

}  // namespace lockstep::dist

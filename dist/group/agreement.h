#pragma once

#include <span>
#include <string>
#include <vector>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Returns every rank's text, in the order of ranks. Collective.
std::vector<std::string> all_gather_texts(ProcessGroup& group, const std::string& text,
                                          const CollectiveOptions& options = {});

/// Throws CommonMismatchError on all ranks if a rank's text differs from rank 0's; the message
/// shows the first line that differs on both ranks. Collective. `op` and `what` go into the
/// message:
/// "[op] rank 1 has another what than rank 0".
void require_same(ProcessGroup& group, const char* op, const char* what, const std::string& text,
                  const CollectiveOptions& options = {});

/// Throws CommonMismatchError if texts, by rank, of lines "NAME: VALUE" differ. The message has the
/// values of the first name that differs, each with its ranks: "[op] ranks differ in NAME: ranks 0,
/// 2: A; rank 1: B." Communicates nothing; `self` is this rank.
void require_alike(const char* op, int self, const std::vector<std::string>& texts);

/// Returns options for the comparisons that ranks make at startup, with a timeout of at least 10
/// minutes: ranks get there at different times, as each reads files and builds models by itself.
CollectiveOptions at_start(const ProcessGroup& group);

/// Replaces every value by its maximum over the ranks. Collective.
void largest_of(ProcessGroup& group, std::span<double> values);

/// Returns every rank's values, by rank; all pass the same number. Collective.
std::vector<std::vector<double>> all_gather_values(ProcessGroup& group,
                                                   std::span<const double> values);

/// Copies `tensors` of rank `root` to all ranks and waits for the result. Any strides: tensors that
/// are not dense go through a copy. Tensors of one device are sent together. Collective.
void broadcast_values(ProcessGroup& group, std::span<const Tensor> tensors, int root = 0);
inline void broadcast_values(ProcessGroup& group, const Tensor& tensor, int root = 0) {
  broadcast_values(group, std::span<const Tensor>(&tensor, 1), root);
}

}  // namespace lockstep::dist

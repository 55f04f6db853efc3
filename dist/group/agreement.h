#pragma once

#include <span>
#include <string>
#include <vector>

#include "dist/group/process_group.h"

namespace lockstep::dist {

/// Every rank's text, in the order of ranks. All ranks call it.
std::vector<std::string> all_gather_texts(ProcessGroup& group, const std::string& text,
                                          const CollectiveOptions& options = {});

/// All ranks call it. Throws MismatchError on all of them where a rank's text is another one than
/// rank 0's, naming the first line that differs, with both. `op` and `what` are for the message:
/// "[op] rank 1 has another what than rank 0".
void require_same(ProcessGroup& group, const char* op, const char* what, const std::string& text,
                  const CollectiveOptions& options = {});

/// For what ranks compare before they begin: as long as reading files and making models may take,
/// which each does by itself; at least 10 minutes.
CollectiveOptions at_start(const ProcessGroup& group);

/// Every value becomes the largest that any rank has in its place. All ranks call it.
void take_largest(ProcessGroup& group, std::span<double> values);

/// Every rank's `tensors` become those of rank `root`, whatever their strides: what is not dense
/// goes through a copy. Those of one device are under way together. Done when it returns.
void broadcast_values(ProcessGroup& group, std::span<const Tensor> tensors, int root = 0);
inline void broadcast_values(ProcessGroup& group, const Tensor& tensor, int root = 0) {
  broadcast_values(group, std::span<const Tensor>(&tensor, 1), root);
}

}  // namespace lockstep::dist

#pragma once

#include "profile/profile.h"

namespace lockstep::profile {

/// A step of 10 us on two threads: an addition of 2.25 us in module "h.0", its backward node on the
/// other thread, and a range of the user.
inline Profile made_up_profile() {
  Profile profile;
  profile.rank = {.rank = 1, .size = 2, .host = "here", .backend = "mpi"};
  profile.process = 77;
  profile.begin_unix_ns = 1'700'000'000'000'000'000;
  profile.duration_ns = 11'000;
  profile.threads = {{100, "main", 3}, {101, "worker"}};
  profile.steps = {12};
  ProfileSpan step;
  step.kind = SpanKind::kStep;
  step.name = "step";
  step.sequence = 12;
  step.step = 12;
  step.begin_ns = 500;
  step.duration_ns = 10'000;
  step.self_ns = 10'000 - 2'250 - 1'000;
  ProfileSpan add;
  add.kind = SpanKind::kOperator;
  add.name = "add.Tensor";
  add.module = "h.0";
  add.parent = 0;
  add.step = 12;
  add.sequence = 42;
  add.begin_ns = 1'500;
  add.duration_ns = add.self_ns = 2'250;
  add.flops = 6;
  add.bytes = 72;
  add.arguments = {
      {{2, 3}, {}, "float", ""}, {{}, {}, "Scalar", "0.5"}, {{}, {}, "TensorList", ""}};
  ProfileSpan range;
  range.name = "augment";
  range.parent = 0;
  range.step = 12;
  range.begin_ns = 4'000;
  range.duration_ns = range.self_ns = 1'000;
  ProfileSpan node;
  node.kind = SpanKind::kNode;
  node.phase = Phase::kBackward;
  node.name = "AddBackward0";
  node.module = "h.0";
  node.thread = 1;
  node.cause = 1;
  node.step = 12;
  node.sequence = 42;
  node.begin_ns = 6'000;
  node.duration_ns = node.self_ns = 500;
  profile.spans = {step, add, range, node};
  return profile;
}

}  // namespace lockstep::profile

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dist/rendezvous/store.h"

namespace lockstep::dist {

/// Gathers texts of all ranks through the store, for the start of a job: rank 0 collects them, so
/// that requests grow with the number of ranks and not with its square. Not thread-safe.
class StoreGather {
 public:
  /// `name` distinguishes this from other objects on the same store.
  StoreGather(Store& store, std::string name) : store_(store), name_(std::move(name)) {}

  /// Returns every rank's text, in the order of ranks. Collective. Throws TimeoutError, naming the
  /// missing ranks, and the errors of the store.
  std::vector<std::string> operator()(std::string text, Store::Timeout timeout = {});

 private:
  Store& store_;
  std::string name_;
  int round_ = 0;
};

}  // namespace lockstep::dist

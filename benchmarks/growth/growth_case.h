#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::growth {

/// What one size of a case took.
struct Cost {
  double seconds = 0;  ///< of processor time, of all threads, in the program and in the system
  double bytes = 0;    ///< by which the process's resident memory rose at most
};

/// Measures the part of a case's function that is of interest. The function is called in a process
/// of its own.
class Meter {
 public:
  /// Begins to measure: what came before does not count.
  void start();
  /// Ends the measurement; otherwise it ends with the function.
  void stop();
  /// Reports these bytes in place of the memory's rise, where the case counts them itself.
  void count_bytes(double bytes);
  const Cost& cost() const { return cost_; }

 private:
  Cost cost_;
  double begun_ = 0;
  double resident_ = 0;
  bool stopped_ = false;
  bool counted_ = false;
};

/// Work of any size. Its cost must not grow faster than in proportion to the size.
struct GrowthCase {
  std::string name;
  std::string unit;        ///< what the size counts
  int64_t first = 0;       ///< the smallest size; three times as many double it
  bool has_bytes = false;  ///< memory is part of the cost
  std::function<void(int64_t size, Meter& meter)> run;
};

std::vector<GrowthCase> data_cases();
std::vector<GrowthCase> tensor_cases();
std::vector<GrowthCase> memory_cases();
std::vector<GrowthCase> graph_cases();

}  // namespace lockstep::growth

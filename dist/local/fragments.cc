#include "dist/local/fragments.h"

#include <numeric>

#include "dist/local/block_codes.h"

namespace lockstep::dist {

std::vector<size_t> fragment_ends(std::span<const int64_t> elements, int64_t fragments) {
  const int64_t all = std::accumulate(elements.begin(), elements.end(), int64_t{0});
  std::vector<size_t> ends;
  int64_t before = 0;
  for (size_t i = 0; i < elements.size(); ++i) {
    before += elements[i];
    const bool is_last = i + 1 == elements.size();
    if (is_last || before * fragments >= all * (std::ssize(ends) + 1)) ends.push_back(i + 1);
  }
  return ends;
}

int64_t owned_elements(std::span<const int64_t> elements, int64_t ranks) {
  int64_t blocks = 0;
  for (const int64_t each : elements) blocks += coded_blocks(each);
  return (blocks + ranks - 1) / ranks * kCodedBlock;
}

int64_t steps_since_average(int64_t number, int64_t count, int64_t inner_steps, int64_t steps) {
  return (steps + number * inner_steps / count) % inner_steps;
}

}  // namespace lockstep::dist

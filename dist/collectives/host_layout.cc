#include "dist/collectives/host_layout.h"

#include <map>

#include "core/base/check.h"

namespace lockstep::dist {

HostLayout HostLayout::one_host(int ranks) {
  return HostLayout(std::vector<int>(static_cast<size_t>(ranks), 0));
}

HostLayout::HostLayout(std::span<const int> names) {
  LS_ASSERT(!names.empty());
  std::map<int, int> numbers;
  for (size_t rank = 0; rank < names.size(); ++rank) {
    const int host = numbers.emplace(names[rank], static_cast<int>(numbers.size())).first->second;
    ranks_.resize(numbers.size());
    std::vector<int>& here = ranks_[static_cast<size_t>(host)];
    places_.push_back({host, static_cast<int>(here.size())});
    here.push_back(static_cast<int>(rank));
  }
}

int HostLayout::agent(int host, int owner) const {
  const int local = this->local(owner) * count(host) / count(host_of(owner));
  return ranks_of(host)[static_cast<size_t>(local)];
}

}  // namespace lockstep::dist

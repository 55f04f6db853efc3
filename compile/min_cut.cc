#include "compile/min_cut.h"

#include <algorithm>
#include <limits>

namespace lockstep::compiler {

void FlowNetwork::add_arc(size_t from, size_t to, double capacity) {
  if (from == to) return;
  arcs_[from].push_back({to, capacity, arcs_[to].size()});
  arcs_[to].push_back({from, 0, arcs_[from].size() - 1});
}

std::vector<int> FlowNetwork::distances(size_t source) const {
  std::vector<int> distance(arcs_.size(), -1);
  distance[source] = 0;
  std::vector<size_t> reached{source};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const Arc& arc : arcs_[reached[i]]) {
      if (arc.left <= 0 || distance[arc.to] >= 0) continue;
      distance[arc.to] = distance[reached[i]] + 1;
      reached.push_back(arc.to);
    }
  }
  return distance;
}

double FlowNetwork::send(size_t from, size_t sink, double most, const std::vector<int>& distance,
                         std::vector<size_t>& next) {
  if (from == sink) return most;
  for (; next[from] < arcs_[from].size(); ++next[from]) {
    Arc& arc = arcs_[from][next[from]];
    if (arc.left <= 0 || distance[arc.to] != distance[from] + 1) continue;
    const double sent = send(arc.to, sink, std::min(most, arc.left), distance, next);
    if (sent <= 0) continue;
    arc.left -= sent;
    arcs_[arc.to][arc.backward].left += sent;
    return sent;
  }
  return 0;
}

std::vector<bool> FlowNetwork::source_side(size_t source, size_t sink) {
  std::vector<int> distance = distances(source);
  while (distance[sink] >= 0) {
    std::vector<size_t> next(arcs_.size(), 0);
    while (send(source, sink, std::numeric_limits<double>::infinity(), distance, next) > 0) {
    }
    distance = distances(source);
  }
  std::vector<bool> side(arcs_.size());
  for (size_t i = 0; i < side.size(); ++i) side[i] = distance[i] >= 0;
  return side;
}

}  // namespace lockstep::compiler

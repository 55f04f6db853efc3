#include "train/run/arrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

namespace lockstep::train {

namespace {

/// One of those that came.
struct Candidate {
  size_t place = 0;  ///< among those present
  int group = -1;    ///< before; -1: it joins
  int turn = 0;      ///< of deciding
  int part = -1;     ///< that it can go on with; -1: none
};

using Row = std::vector<std::optional<Candidate>>;  // by part

class Rows {
 public:
  Rows(std::vector<Candidate> candidates, int shard_size)
      : loose_(std::move(candidates)), size_(static_cast<size_t>(shard_size)) {}

  /// The groups that go on, that of the first candidate first.
  std::vector<Row> form() {
    const Candidate lead = loose_.front();
    std::vector<Row> rows = take_whole_groups();
    const auto own =
        std::ranges::find_if(rows, [&](const Row& row) { return row[0]->place == lead.place; });
    if (own != rows.end()) {
      std::rotate(rows.begin(), own, own + 1);
    } else {
      rows.insert(rows.begin(), row_of(lead, rows));
    }
    const size_t whole = rows.size() + loose_.size() / size_;
    while (rows.size() < whole) rows.push_back(next_row());
    // What parts no rank has at hand is for those that are left.
    for (Row& row : rows) {
      for (std::optional<Candidate>& each : row) {
        if (each) continue;
        each = loose_.front();
        each->part = -1;
        loose_.erase(loose_.begin());
      }
    }
    return rows;
  }

 private:
  std::vector<Row> take_whole_groups() {
    std::set<int> groups;
    for (const Candidate& each : loose_) groups.insert(each.group);
    std::vector<Row> rows;
    for (const int group : groups) {
      Row row(size_);
      for (const Candidate& each : loose_) {
        if (each.group == group && each.part >= 0) row[static_cast<size_t>(each.part)] = each;
      }
      if (group < 0 || !std::ranges::all_of(row, [](const auto& each) { return !!each; })) continue;
      std::erase_if(loose_, [&](const Candidate& each) { return each.group == group; });
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::optional<Candidate> take(int part) {
    const auto found = std::ranges::find(loose_, part, &Candidate::part);
    if (found == loose_.end()) return std::nullopt;
    const Candidate taken = *found;
    loose_.erase(found);
    return taken;
  }

  /// A group of ranks that are not in a whole one; of the last of these, if there are too few.
  Row row_of(const Candidate& lead, std::vector<Row>& whole) {
    std::erase_if(loose_, [&](const Candidate& each) { return each.place == lead.place; });
    Row row(size_);
    row[0] = lead;
    const auto lacks = [&](size_t part) {
      return std::ranges::find(loose_, static_cast<int>(part), &Candidate::part) == loose_.end();
    };
    for (size_t part = 1; part < size_; ++part) {
      if (lacks(part)) {
        for (const std::optional<Candidate>& each : whole.back()) loose_.push_back(*each);
        whole.pop_back();
      }
      row[part] = take(static_cast<int>(part));
    }
    return row;
  }

  Row next_row() {
    Row row(size_);
    for (size_t part = 0; part < size_; ++part) row[part] = take(static_cast<int>(part));
    return row;
  }

  std::vector<Candidate> loose_;
  size_t size_;
};

/// The most steps to which the first of these, and a rank of each part, can come; -1: none.
int64_t common_steps(const std::vector<StateTold>& told, size_t first, int shard_size) {
  const std::set<int64_t, std::greater<>> wanted = {told[first].steps, told[first].finishes};
  for (const int64_t steps : wanted) {
    std::set<int> parts;
    for (const StateTold& each : told) {
      if (each.comes_to(steps) && each.part >= 0 && each.part < shard_size) parts.insert(each.part);
    }
    if (std::ssize(parts) == shard_size) return steps;
  }
  return -1;
}

}  // namespace

std::string StateTold::text() const { return fmt::format("{} {} {}", steps, finishes, part); }

StateTold StateTold::of(const std::string& text) {
  StateTold told;
  std::istringstream words(text);
  if (words >> told.steps >> told.finishes >> told.part) return told;
  return {};
}

bool Arrangement::moves_parts() const {
  return std::ranges::any_of(sources, [](int source) { return source >= 0; });
}

Arrangement arrange_groups(const std::vector<dist::RollCall::Present>& present, int ranks,
                           int shard_size, const std::function<std::string(int left)>& obstacle) {
  Arrangement result;
  const auto count = static_cast<int>(present.size());
  if (count < shard_size) {
    result.why = fmt::format(
        "{} of {} ranks are left, and a model is kept by {} together (parallel.shard_size)", count,
        ranks, shard_size);
    return result;
  }
  std::vector<StateTold> told;
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < present.size(); ++i) {
    told.push_back(StateTold::of(present[i].told));
    const int rank = present[i].rank;
    const bool trained = rank < ranks;
    candidates.push_back({.place = i,
                          .group = trained ? rank / shard_size : -1,
                          .turn = trained ? rank % shard_size : shard_size});
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::turn);
  const size_t first = candidates.front().place;
  result.steps = told[first].part == 0 ? common_steps(told, first, shard_size) : -1;
  if (result.steps < 0) {
    result.why = fmt::format(
        "the {} ranks that are left do not have every part of the state of one step", count);
    return result;
  }
  for (Candidate& each : candidates) {
    const StateTold& state = told[each.place];
    if (state.comes_to(result.steps) && state.part < shard_size) each.part = state.part;
  }
  int left = count - count % shard_size;
  result.why = obstacle(left);
  for (int fewer = left - shard_size; fewer > 0 && !result.why.empty(); fewer -= shard_size) {
    if (obstacle(fewer).empty()) {
      left = fewer;
      result.why.clear();
    }
  }
  if (!result.why.empty()) return result;
  std::vector<Row> rows = Rows(std::move(candidates), shard_size).form();
  rows.resize(static_cast<size_t>(left / shard_size));
  std::vector<int> holders(static_cast<size_t>(shard_size), -1);
  for (const Row& row : rows) {
    for (const std::optional<Candidate>& each : row) {
      const auto number = static_cast<int>(result.places.size());
      int& holder = holders[static_cast<size_t>(number % shard_size)];
      const bool has_part = each->part >= 0;
      if (has_part && holder < 0) holder = number;
      result.places.push_back(each->place);
      result.sources.push_back(has_part ? -1 : holder);
    }
  }
  return result;
}

}  // namespace lockstep::train

#include "compile/min_cut.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>

namespace lockstep::compiler {
namespace {

struct TestArc {
  size_t from;
  size_t to;
  double capacity;
};

double cut_of(const std::vector<TestArc>& arcs, const std::vector<bool>& side) {
  double sum = 0;
  for (const TestArc& arc : arcs) sum += side[arc.from] && !side[arc.to] ? arc.capacity : 0;
  return sum;
}

std::vector<bool> side_of(size_t nodes, const std::vector<TestArc>& arcs) {
  FlowNetwork network(nodes);
  for (const TestArc& arc : arcs) network.add_arc(arc.from, arc.to, arc.capacity);
  return network.source_side(0, nodes - 1);
}

TEST(FlowNetwork, CutsTheNarrowestPlaceOfAWay) {
  EXPECT_EQ(side_of(4, {{0, 1, 5}, {1, 2, 2}, {2, 3, 4}}),
            (std::vector<bool>{true, true, false, false}));
}

TEST(FlowNetwork, OfEqualCutsTakesThatNearestToTheSource) {
  EXPECT_EQ(side_of(4, {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}}),
            (std::vector<bool>{true, false, false, false}));
}

TEST(FlowNetwork, DoesNotCutInfiniteArcs) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(side_of(4, {{0, 1, infinite}, {1, 2, infinite}, {2, 3, 7}, {0, 2, infinite}}),
            (std::vector<bool>{true, true, true, false}));
}

RC_GTEST_PROP(FlowNetwork, NoOtherSideHasALesserCut, ()) {
  const auto nodes = *rc::gen::inRange<size_t>(2, 7);
  const auto arcs = *rc::gen::container<std::vector<TestArc>>(rc::gen::construct<TestArc>(
      rc::gen::inRange<size_t>(0, nodes), rc::gen::inRange<size_t>(0, nodes),
      rc::gen::map(rc::gen::inRange(0, 9), [](int i) { return static_cast<double>(i); })));
  const std::vector<bool> found = side_of(nodes, arcs);
  RC_ASSERT(found[0] && !found[nodes - 1]);
  const double least = cut_of(arcs, found);
  for (size_t bits = 0; bits < size_t{1} << nodes; ++bits) {
    std::vector<bool> side(nodes);
    for (size_t i = 0; i < nodes; ++i) side[i] = (bits >> i & 1) != 0;
    if (!side[0] || side[nodes - 1]) continue;
    RC_ASSERT(cut_of(arcs, side) >= least);
    // Of all minimum cuts, the side found is part of each.
    for (size_t i = 0; cut_of(arcs, side) == least && i < nodes; ++i) {
      RC_ASSERT(!found[i] || side[i]);
    }
  }
}

}  // namespace
}  // namespace lockstep::compiler

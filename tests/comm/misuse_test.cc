// Callers' mistakes are rejected on every rank, naming ranks and places in the source.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "comm/worlds.h"

namespace braid::misuse_test {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;

Tensor zeros(at::IntArrayRef shape = {2}) { return at::zeros(shape); }

// The errors that two ranks get.
std::vector<std::string> told(Over over, const std::function<void(const Group&)>& body) {
  std::vector<std::string> seen(2);
  EXPECT_NE(failure_of([&] {
              run_over(over, {.size = 2}, [&](const Group& g) {
                auto& mine = seen[std::size_t(g.rank())];
                g.barrier();  // none starts when another one has failed
                mine = failure_of([&] { body(g); });
                if (!mine.empty()) throw Error(mine);
              });
            }),
            "");
  return seen;
}

class Misuse : public testing::TestWithParam<Over> {
 protected:
  // Both ranks are told both wishes.
  static void expect_disagreement(const std::function<void(const Group&)>& body,
                                  const std::string& of_zero, const std::string& of_one) {
    for (const auto& sentence : told(GetParam(), body))
      EXPECT_THAT(sentence,
                  AllOf(HasSubstr("rank 0 calls " + of_zero), HasSubstr("rank 1 calls " + of_one)));
  }
  // Each rank detects it alone.
  static void expect_refusal(const std::function<void(const Group&)>& body,
                             const std::string& sentence) {
    for (const auto& seen : told(GetParam(), body)) EXPECT_THAT(seen, HasSubstr(sentence));
  }
};
INSTANTIATE_TEST_SUITE_P(Transports, Misuse, testing::Values(Over::kThreads, Over::kSockets),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Misuse, OfDifferentOperations) {
  expect_disagreement([](const Group& g) { g.rank() ? g.barrier() : (void)g.all_reduce(zeros()); },
                      "all_reduce of Float [2]", "barrier of Byte []");
  expect_disagreement([](const Group& g) { g.rank() ? g.barrier() : g.await(); }, "barrier",
                      "barrier");
  expect_disagreement(
      [](const Group& g) {
        if (g.rank()) return (void)g.ring_shift(zeros());
        (void)g.all_to_all({zeros(), zeros()});
      },
      "all_to_all of Float [2]", "ring_shift of Float [2]");
  expect_disagreement(
      [](const Group& g) { (void)(g.rank() ? g.all_gather(zeros(), 0) : g.broadcast(zeros(), 0)); },
      "broadcast of Float [2] from rank 0", "all_gather of Float [2] along dim 0");
}

TEST_P(Misuse, OfDifferentDtypes) {
  const auto mine = [](const Group& g) { return g.rank() ? zeros().to(at::kHalf) : zeros(); };
  expect_disagreement([&](const Group& g) { (void)g.all_reduce(mine(g)); }, "all_reduce of Float",
                      "all_reduce of Half");
  expect_disagreement([&](const Group& g) { (void)g.all_gather(mine(g), 0); },
                      "all_gather of Float", "all_gather of Half");
  expect_disagreement([&](const Group& g) { (void)g.broadcast(mine(g), 1); }, "broadcast of Float",
                      "broadcast of Half");
  expect_disagreement([&](const Group& g) { (void)g.ring_shift(mine(g)); }, "ring_shift of Float",
                      "ring_shift of Half");
  expect_disagreement(
      [&](const Group& g) {
        (void)g.all_to_all({mine(g), mine(g)});
      },
      "all_to_all of Float", "all_to_all of Half");
}

TEST_P(Misuse, OfShapesThatDoNotGoTogether) {
  expect_disagreement(
      [](const Group& g) {
        (void)g.all_reduce(zeros({2, 3 + g.rank()}));
      },
      "all_reduce of Float [2, 3]", "all_reduce of Float [2, 4]");
  // sizes may differ only along the concatenated dim
  expect_disagreement(
      [](const Group& g) {
        (void)g.all_gather(zeros({2, 3 + g.rank()}), 0);
      },
      "all_gather of Float [2, 3] along dim 0", "all_gather of Float [2, 4] along dim 0");
  expect_disagreement(
      [](const Group& g) {
        (void)g.all_gather(g.rank() ? zeros({2, 2, 2}) : zeros({2, 2}), 1);
      },
      "all_gather of Float [2, 2]", "all_gather of Float [2, 2, 2]");
}

// Cut otherwise, the same extents are those of other tensors.
TEST_P(Misuse, OfDifferentNumbersOfTensors) {
  const MakeSum first = [](const SumRun&, std::span<const Tensor> parts, const Tensor& out) {
    out.copy_(parts[0]);
  };
  expect_disagreement(
      [&](const Group& g) {
        (void)(g.rank() ? g.all_reduce({zeros({2, 3})}, first)
                        : g.all_reduce({zeros({2}), zeros({3})}, first));
      },
      "all_reduce of Float [2], [3]", "all_reduce of Float [2, 3]");
}

TEST_P(Misuse, OfDifferentRootsAndDims) {
  expect_disagreement([](const Group& g) { (void)g.broadcast(zeros(), g.rank()); },
                      "broadcast of Float [2] from rank 0", "broadcast of Float [2] from rank 1");
  expect_disagreement(
      [](const Group& g) {
        (void)g.all_gather(zeros({2, 2}), g.rank());
      },
      "all_gather of Float [2, 2] along dim 0", "all_gather of Float [2, 2] along dim 1");
  expect_disagreement(
      [](const Group& g) {
        (void)g.all_to_all({zeros({2}), zeros({g.rank() + 1})});  // correct
        g.rank() ? g.barrier() : g.await();
      },
      "barrier", "barrier");
}

TEST_P(Misuse, OfACollectiveTooMany) {
  expect_disagreement(
      [](const Group& g) {
        g.barrier();
        if (g.rank() == 0) (void)g.subgroup(std::vector{0, 1});  // not a collective itself
        (void)g.all_reduce(zeros({1}));
        g.rank() ? g.barrier() : (void)g.all_reduce(zeros({1}));
      },
      "all_reduce of Float [1]", "barrier of Byte []");
}

TEST_P(Misuse, IsShownAtItsPlacesInTheSource) {
  constexpr int kLine = __LINE__;
  const auto body = [](const Group& g) {
    if (g.rank() == 0) (void)g.all_reduce(zeros({1}));
    if (g.rank() == 1) (void)g.all_reduce(zeros({2}));
  };
  for (const auto& sentence : told(GetParam(), body))
    EXPECT_THAT(sentence, AllOf(HasSubstr(text_of("misuse_test.cc:", kLine + 2, "), rank 1")),
                                EndsWith(text_of("misuse_test.cc:", kLine + 3, ")"))));
}

TEST_P(Misuse, OfRootsThatAreNoRanks) {
  for (const int root : {-1, 2, 1 << 30})
    expect_refusal([&](const Group& g) { (void)g.broadcast(zeros(), root); },
                   text_of("broadcast from rank ", root, " of 2"));
}

TEST_P(Misuse, OfDimsThatATensorDoesNotHave) {
  for (const std::int64_t dim : {-3, 2, 1 << 30})
    expect_refusal(
        [&](const Group& g) {
          (void)g.all_gather(zeros({2, 3}), dim);
        },
        text_of("all_gather along dim ", dim, " of a tensor of shape [2, 3]"));
  expect_refusal([](const Group& g) { (void)g.all_gather(zeros({}), 0); },
                 "all_gather along dim 0 of a tensor of shape []");
}

TEST_P(Misuse, OfAllToAll) {
  expect_refusal([](const Group& g) { (void)g.all_to_all({zeros()}); },
                 "all_to_all over 2 ranks was given 1 parts");
  expect_refusal([](const Group& g) { (void)g.all_to_all({}); },
                 "all_to_all over 2 ranks was given 0 parts");
  expect_refusal(
      [](const Group& g) {
        (void)g.all_to_all({zeros(), zeros().to(at::kInt)});
      },
      "parts of different dtypes or numbers of dims");
  expect_refusal(
      [](const Group& g) {
        (void)g.all_to_all({zeros(), zeros({1, 2})});
      },
      "parts of different dtypes or numbers of dims");
}

// The in-place form requires the root's shape on all ranks; those with another one are told.
// Its frame may have ended with an exception while another rank still reads.
TEST_P(Misuse, OfMemoryThatItsTensorDoesNotOwn) {
  const auto pointing = [](std::vector<float>& values) { return at::from_blob(values.data(), 2); };
  const std::map<std::string, std::function<void(const Group&, const Tensor&)>> collectives = {
      {"all_reduce", [](const Group& g, const Tensor& x) { (void)g.all_reduce(x); }},
      {"all_gather", [](const Group& g, const Tensor& x) { (void)g.all_gather(x, 0); }},
      {"all_to_all",
       [](const Group& g, const Tensor& x) {
         (void)g.all_to_all({zeros(), x});
       }},
      {"broadcast", [](const Group& g, const Tensor& x) { (void)g.broadcast(x, 0); }},
      {"ring_shift", [](const Group& g, const Tensor& x) { (void)g.ring_shift(x); }}};
  for (const auto& [name, call] : collectives) {
    SCOPED_TRACE(name);
    expect_refusal(
        [&, call = call](const Group& g) {
          std::vector<float> values(2);
          call(g, pointing(values));
        },
        "a tensor of shape [2] that does not own its memory");
  }
}

TEST_P(Misuse, OfBroadcastInPlace) {
  const auto seen = told(GetParam(), [](const Group& g) {
    auto x = zeros({2 + g.rank()});
    g.broadcast_(x, 0);
    g.barrier();
  });
  EXPECT_EQ(seen[1], "broadcast in place: rank 1 has the shape [3], rank 0 sends [2]");
  EXPECT_THAT(seen[0], EndsWith(seen[1]));
}

TEST_P(Misuse, ByDifferentValues) {
  for (const auto& sentence : told(GetParam(), [](const Group& g) {
         auto x = at::arange(1000);
         if (g.rank() == 1) x[777] = 0;
         check_same(g, x, "noise levels");
       }))
    EXPECT_EQ(sentence, "the ranks have different noise levels: rank 1 differs from rank 0");
}

TEST_P(Misuse, LeavesAWorldThatWorks) {
  with_worlds_over(GetParam(), {.size = 2}, [](World& world) {
    for (int i = 0; i < 10; ++i) {
      EXPECT_THAT(failure_of([&] {
                    world.run([](const Group& g) { (void)g.all_reduce(zeros({g.rank() + 1})); });
                  }),
                  HasSubstr("the ranks disagree"));
      world.run([](const Group& g) {
        EXPECT_EQ(g.all_reduce(at::full({3}, 1 + g.rank()))[2].item<int>(), 3);
      });
    }
  });
}

TEST(Misuse, OfASubgroupsSubgroupAmongProcesses) {
  const auto seen = told(Over::kSockets, [](const Group& g) {
    (void)g.subgroup(std::vector{1, 0}).subgroup(std::vector{0, 1});
  });
  EXPECT_THAT(seen[0], HasSubstr("only the group of all processes has subgroups"));
}

TEST(Notes, OfTooManyDimsAreRefused) {
  const auto seen = told(Over::kSockets, [](const Group& g) {
    (void)g.all_reduce(at::zeros(std::vector<std::int64_t>(60, 1)));
  });
  EXPECT_THAT(seen[0], HasSubstr("the shapes of a collective's tensors take 528 bytes"));
}

}  // namespace braid::misuse_test

// Which tensors our own attention takes, the memory layout of its result, and how threads share the
// work.

#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "attention_cases.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "use_threads.h"

namespace braid::attention_tensors_test {

TEST(OwnAttentionsTensors, MayBeViews) {
  const auto joined = draw({2, 50, 3, 3, 64}, 5);  // [B L qkv H D]
  const auto heads_of = [&](int i) { return joined.select(2, i).transpose(1, 2); };
  expect_exact({heads_of(0), heads_of(1), heads_of(2)}, 3e-6);
  const auto wide = draw({2, 3, 80, 70}, 6);  // rows not aligned to 4 bytes
  expect_exact(
      {wide.narrow(3, 1, 64).narrow(2, 1, 41), wide.narrow(3, 3, 64), wide.narrow(3, 5, 64)}, 3e-6);
  const auto shared = draw({1, 1, 40, 32}, 7).expand({2, 3, 40, 32});
  expect_exact({draw({2, 3, 33, 32}, 8), shared, shared}, 3e-6);
}

// LibTorch's kernel for CPUs, which computes the LSE of what ours does not take, does not look.
TEST(AttentionsTensors, MayHaveNumbersThatAreNotAdjacent) {
  const auto x = draw(Sizes{2, 4, 33, 40, 64, 2});
  const auto turned = [](const Tensor& heads) {
    return heads.transpose(2, 3).contiguous().transpose(2, 3);
  };
  const auto want = exact(x);
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [q, k, v] : {Inputs{turned(x.q), x.k, x.v}, Inputs{x.q, turned(x.k), x.v},
                                  Inputs{x.q, x.k, turned(x.v)}}) {
      const auto got = ops::attention_with_lse(q.to(dtype), k.to(dtype), v.to(dtype));
      EXPECT_LT(largest_error(got.out_BHLD, want.out_BHLD), 2 * kUnit) << dtype;
      EXPECT_LT(largest_error(got.lse_BHL, want.lse_BHL), 1e-4) << dtype;
    }
}

TEST(OwnAttentionsTensors, LieAsTokensOfHeads) {
  for (const std::int64_t width : {32, 72}) {
    const auto x = draw(Sizes{2, 3, 33, 40, width});
    const auto got = ops::cpu::attend(x.q, x.k, x.v, &loops());
    EXPECT_TRUE(got.out_BHLD.transpose(1, 2).is_contiguous());
    EXPECT_EQ(got.out_BHLD.sizes(), x.q.sizes());
    EXPECT_EQ(got.out_BHLD.scalar_type(), at::kBFloat16);
    EXPECT_EQ(got.lse_BHL.sizes(), x.q.sizes().slice(0, 3));
    EXPECT_EQ(got.lse_BHL.scalar_type(), at::kFloat);
  }
}

TEST(OwnAttentionsTensors, AreRefusedWhereTheyDoNotFit) {
  const auto x = draw(Sizes{1, 2, 8, 9, 64});
  const auto refuses = [](const Inputs& y) {
    EXPECT_FALSE(ops::cpu::attends(y.q, y.k, y.v));
    EXPECT_ANY_THROW(ops::cpu::attend(y.q, y.k, y.v, &loops()));
  };
  refuses({x.q.narrow(3, 0, 48), x.k.narrow(3, 0, 48), x.v.narrow(3, 0, 48)});
  refuses(draw(Sizes{1, 1, 2, 2, 544}));
  refuses({x.q, x.k, x.v.narrow(2, 0, 8)});
  refuses({x.q.narrow(1, 0, 1), x.k, x.v});
  refuses({x.q, x.k.narrow(1, 0, 1), x.v});
  refuses({draw({1, 3, 8, 64}, 4), x.k, x.v});
  refuses({x.q.to(at::kFloat), x.k.to(at::kFloat), x.v.to(at::kFloat)});
  refuses({x.q, x.k.narrow(2, 0, 0), x.v.narrow(2, 0, 0)});
  refuses({x.q, draw({1, 2, 64, 9}, 2).transpose(2, 3), x.v});
}

TEST(OwnAttentionsTensors, AreTakenWhereLibTorchsAreSlower) {
  const auto x = draw(Sizes{1, 2, 8, 9, 64});
  const bool are_ours = ops::leads_in_bfloat16();
  EXPECT_EQ(ops::cpu::attends(x.q, x.k, x.v), are_ours);
  const auto want = are_ours ? ops::cpu::attend(x.q, x.k, x.v)
                             : ops::reference::attention_with_lse(x.q, x.k, x.v);
  EXPECT_TRUE(at::equal(ops::attention(x.q, x.k, x.v), want.out_BHLD));
  EXPECT_TRUE(at::equal(ops::attention_with_lse(x.q, x.k, x.v).lse_BHL, want.lse_BHL));
  const auto none = ops::attention_with_lse(x.q, x.k.narrow(2, 0, 0), x.v.narrow(2, 0, 0));
  EXPECT_TRUE(none.lse_BHL.isneginf().all().item<bool>());
  EXPECT_EQ(ops::attention(x.q.narrow(2, 0, 0), x.k, x.v).sizes(),
            (std::vector<std::int64_t>{1, 2, 0, 64}));
}

TEST(OwnAttentionsThreads, GiveTheSameForAnyNumber) {
  const auto x = draw(Sizes{1, 3, 290, 280, 64});
  for (const auto& [name, kernels] : all_kernels()) {
    const auto by = [&, &attend_by = kernels](int threads) {
      const UseThreads use(threads);
      return ops::cpu::attend(x.q, x.k, x.v, attend_by);
    };
    const auto one = by(1);
    for (const int threads : {2, 3, 5, 64}) {
      EXPECT_TRUE(at::equal(one.out_BHLD, by(threads).out_BHLD)) << name << " " << threads;
      EXPECT_TRUE(at::equal(one.lse_BHL, by(threads).lse_BHL)) << name << " " << threads;
    }
  }
}

std::mutex mutex;
std::set<std::thread::id> seen;
std::atomic<std::int64_t> packed_values, packed_keys;

TEST(OwnAttentionsThreads, ShareOneHead) {
  auto kernels = loops();
  kernels.attend = [](const ops::AttentionBlock& block) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
    loops().attend(block);
  };
  const auto x = draw(Sizes{1, 1, 96, 10, 32});
  const UseThreads use(3);
  ops::cpu::attend(x.q, x.k, x.v, &kernels);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(OwnAttentionsThreads, PackAGroupsKeysOnce) {
  auto kernels = loops();
  auto products = *loops().products;
  products.pack_halves = [](const std::uint16_t* row, std::int64_t stride, std::int64_t count,
                            std::int64_t depth, float* panel) {
    packed_keys += count;
    loops().products->pack_halves(row, stride, count, depth, panel);
  };
  kernels.products = &products;
  kernels.pack_values = [](const std::uint16_t* row, std::int64_t stride, std::int64_t keys,
                           std::int64_t width, float* panels) {
    packed_values += keys;
    loops().pack_values(row, stride, keys, width, panels);
  };
  const auto x = draw(Sizes{2, 4, 600, 70, 32, 2});
  const UseThreads use(1);
  ops::cpu::attend(x.q, x.k, x.v, &kernels);
  EXPECT_EQ(packed_keys, 2 * 2 * 70);
  EXPECT_EQ(packed_values, 2 * 2 * 70);
}

}  // namespace braid::attention_tensors_test

#include "ops/cpu/attention.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "ops/cpu/blocked_product.h"
#include "ops/kernels/attention_kernels.h"

namespace braid::ops::cpu {
namespace {

constexpr std::int64_t kMaxWidth = 512;
constexpr std::int64_t kPanels = 32;  // a multiple of every kernel's panel
// Least width of heads that are filled up to whole panels; narrower ones would gain too little.
constexpr std::int64_t kLeastFilled = 64;

// Queries that share the keys in the L2 cache; fewer if threads would be idle.
constexpr std::int64_t kMostQueries = 256, kTasksAThread = 4;

// One head of one picture, with the stride of its rows.
struct Head {
  std::uint16_t* data;
  std::int64_t stride;

  Head(const Tensor& x_BHLD, std::int64_t index)
      : data(static_cast<std::uint16_t*>(const_cast<void*>(x_BHLD.const_data_ptr())) +
             index / x_BHLD.size(1) * x_BHLD.stride(0) + index % x_BHLD.size(1) * x_BHLD.stride(1)),
        stride(x_BHLD.stride(2)) {}
  std::uint16_t* row(std::int64_t i) const { return data + i * stride; }
};

struct Problem {
  Tensor q_BHLD, k_BGLD, v_BGLD, out_BHLD, lse_BHL;
  float scale;
  const AttentionKernels& kernels;
  SeenKeys seen;

  std::int64_t heads() const { return q_BHLD.size(0) * q_BHLD.size(1); }
  std::int64_t heads_per_group() const { return q_BHLD.size(1) / k_BGLD.size(1); }
  std::int64_t queries() const { return q_BHLD.size(2); }
  std::int64_t keys() const { return k_BGLD.size(2); }
  std::int64_t width() const { return q_BHLD.size(3); }
  std::int64_t words() const { return width() / kernels.products->halves_per_word; }
};

// One thread's memory: a group's packed keys and values, and a block of queries.
class AttentionTask {
 public:
  AttentionTask(const Problem& p, std::int64_t rows)
      : p_(p),
        keys_(round_up(p.keys(), kPanels) * p.words()),
        values_(round_up(p.keys(), kPanels) * p.words()),
        queries_(rows * p.words()),
        sums_(rows * p.width()),
        totals_(rows * kTotals),
        largest_(rows) {}

  void run(std::int64_t head, Range queries) {
    const auto group = head / p_.heads_per_group();
    if (group != group_) pack(group);
    group_ = group;
    const auto rows = round_up(queries.count, p_.kernels.rows);
    take(Head(p_.q_BHLD, head), queries, rows);
    const bool is_causal = p_.seen == SeenKeys::kCausal;
    std::fill_n(totals_.at(0), rows * kTotals, 0.f);
    std::fill_n(largest_.at(0), rows, -std::numeric_limits<float>::infinity());
    p_.kernels.attend({.keys = keys_.at(0),
                       .values = values_.at(0),
                       .num_keys = p_.keys(),
                       .width = p_.width(),
                       .seen = is_causal ? queries.begin + 1 : p_.keys(),
                       .seen_more = is_causal ? 1 : 0,
                       .scale = p_.scale,
                       .queries = queries_.at(0),
                       .rows = rows,
                       .sums = sums_.at(0),
                       .totals = totals_.at(0),
                       .largest = largest_.at(0)});
    give(Head(p_.out_BHLD, head), head, queries);
  }

 private:
  static constexpr std::int64_t kTotals = 2 * AttentionKernels::kParts;

  void pack(std::int64_t group) {
    const Head k(p_.k_BGLD, group), v(p_.v_BGLD, group);
    const auto& products = *p_.kernels.products;
    const std::int64_t panel = products.columns;
    for (std::int64_t n = 0; n < p_.keys(); n += panel)
      products.pack_halves(k.row(n), k.stride, std::min(panel, p_.keys() - n), p_.width(),
                           keys_.at(n * p_.words()));
    p_.kernels.pack_values(v.data, v.stride, p_.keys(), p_.width(), values_.at(0));
  }

  // Fills whole strips, with 0 beyond the queries.
  void take(const Head& q, Range queries, std::int64_t rows) {
    for (std::int64_t m = 0; m < queries.count; ++m)
      p_.kernels.products->pack_a(q.row(queries.begin + m), p_.width(),
                                  queries_.at(m * p_.words()));
    std::fill_n(queries_.at(queries.count * p_.words()), (rows - queries.count) * p_.words(), 0.f);
  }

  void give(const Head& out, std::int64_t head, Range queries) const {
    auto* const lse = p_.lse_BHL.mutable_data_ptr<float>() + head * p_.queries() + queries.begin;
    for (std::int64_t m = 0; m < queries.count; ++m) {
      const auto total = p_.kernels.finish(sums_.at(m * p_.width()), totals_.at(m * kTotals),
                                           p_.width(), out.row(queries.begin + m));
      lse[m] = float(std::numbers::ln2 * (double(*largest_.at(m)) + std::log2(double(total))));
    }
  }

  const Problem& p_;
  std::int64_t group_ = -1;  // the packed group
  Buffer<float> keys_, values_, queries_, sums_, totals_, largest_;
};

// Each thread gets consecutive blocks of queries, from as few heads as possible.
void run(const Problem& p) {
  const std::int64_t strip = p.kernels.rows;
  const auto share = blocks_in(p.heads() * p.queries(), kTasksAThread * at::get_num_threads());
  const auto most = std::clamp(round_up(share, strip), strip, kMostQueries / strip * strip);
  const auto blocks = blocks_in(p.queries(), most);
  const auto rows = round_up(blocks_in(p.queries(), blocks), strip);
  at::parallel_for(0, p.heads() * blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    AttentionTask task(p, rows);
    for (auto i = begin; i < end; ++i) {
      const auto first = i % blocks * rows;
      if (first < p.queries()) task.run(i / blocks, {first, std::min(rows, p.queries() - first)});
    }
  });
}

bool supports(const Tensor& x_BHLD) {
  return x_BHLD.is_cpu() && x_BHLD.scalar_type() == at::kBFloat16 && x_BHLD.dim() == 4 &&
         x_BHLD.numel() > 0 && x_BHLD.stride(3) == 1;
}

bool supports_all(const Tensor& q, const Tensor& k, const Tensor& v) {
  if (!supports(q) || !supports(k) || !supports(v)) return false;
  const auto width = q.size(3);
  return k.sizes() == v.sizes() && q.size(0) == k.size(0) && q.size(1) % k.size(1) == 0 &&
         width == k.size(3) && (width % kPanels == 0 || width >= kLeastFilled) &&
         width <= kMaxWidth;
}

// Whole panels: zeros change neither scores nor sums.
Tensor filled_up(const Tensor& x_BHLD) {
  const auto width = x_BHLD.size(3), whole = round_up(width, kPanels);
  return whole == width ? x_BHLD : at::constant_pad_nd(x_BHLD, {0, whole - width});
}

}  // namespace

bool attends(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD) {
  return supports_all(q_BHLD, k_BGLD, v_BGLD) && attention_kernels();
}

PartialAttention attend(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                        const AttentionKernels* kernels, SeenKeys seen) {
  check(supports_all(q_BHLD, k_BGLD, v_BGLD), "no attention of ours of queries ", q_BHLD.sizes(),
        " to keys ", k_BGLD.sizes(), " and values ", v_BGLD.sizes(), " of ", q_BHLD.scalar_type());
  if (!kernels) kernels = attention_kernels();
  check(kernels != nullptr, "this machine attends by LibTorch's kernels");
  check(seen == SeenKeys::kAll || q_BHLD.size(2) == k_BGLD.size(2), "causal attention of ",
        q_BHLD.size(2), " queries to ", k_BGLD.size(2), " keys");
  const auto batches = q_BHLD.size(0), heads = q_BHLD.size(1), queries = q_BHLD.size(2);
  const auto width = q_BHLD.size(3);
  const auto q = filled_up(q_BHLD);
  const auto out_BLHD = at::empty({batches, queries, heads, q.size(3)}, q.options());
  const auto lse_BHL = at::empty({batches, heads, queries}, q.options().dtype(at::kFloat));
  run({.q_BHLD = q,
       .k_BGLD = filled_up(k_BGLD),
       .v_BGLD = filled_up(v_BGLD),
       .out_BHLD = out_BLHD.transpose(1, 2),
       .lse_BHL = lse_BHL,
       .scale = float(std::numbers::log2e / std::sqrt(double(width))),
       .kernels = *kernels,
       .seen = seen});
  return {.out_BHLD = out_BLHD.narrow(3, 0, width).contiguous().transpose(1, 2),
          .lse_BHL = lse_BHL};
}

}  // namespace braid::ops::cpu

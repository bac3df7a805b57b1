#include "pipeline/planner/costs/time.h"

#include <algorithm>
#include <cmath>

#include "pipeline/planner/costs/denoisers.h"
#include "pipeline/planner/costs/traffic.h"
#include "pipeline/planner/costs/widened.h"

namespace braid {

double StepTime::total() const {
  double sum = compute + memory + gaps + bubbles + copies;
  for (const auto& [axis, seconds] : communication) sum += seconds;
  return sum;
}

namespace {

// What runs before and behind the blocks: embedders, copies into a recorded step, the last layer;
// about 20 kernels of FLUX.1's and 35 of FLUX.2's, which embeds the timestep in each step. Most are
// small: they take about twice a kernel's gap.
constexpr double kEndKernels = 30, kGapsOfEnd = 2;
constexpr double kEndMoves = 8;  // hidden widths per token

// Kernels of parallel/ulysses.cc in a block besides two exchanges, if heads divide evenly.
constexpr int kUlyssesCopies = 4;

// What the host takes to start a kernel of a step that is not recorded.
constexpr double kHostCall = 6e-6;

// The slowest device of a layout's ranks, in each respect: all wait for it.
struct Pace {
  double products = INFINITY, attention = INFINITY, memory_speed = INFINITY, gap = 0;
};

// Whether gpu::multiplies_float8() holds on every rank.
bool multiplies_float8(const Machine& machine, const PlanJob& job) {
  return job.memory.quantize == Quantize::kFloat8 && job.dtype == at::kBFloat16 &&
         std::all_of(machine.devices.begin(), machine.devices.end(),
                     [](const DeviceSpec& d) { return d.float8_flops > 0; });
}

Pace pace_of(const Machine& machine, const PlanJob& job) {
  const bool has_float8 = multiplies_float8(machine, job);
  Pace slowest;
  for (const auto& d : machine.devices) {
    const auto peak = job.dtype == at::kFloat ? d.float32_flops : d.bfloat16_flops;
    const auto products = has_float8 ? d.float8_flops * d.float8_reached : peak * d.reached;
    const auto attended = d.attention_reached > 0 ? d.attention_reached : d.reached;
    slowest.products = std::min(slowest.products, products);
    slowest.attention = std::min(slowest.attention, peak * attended);
    slowest.memory_speed = std::min(slowest.memory_speed, d.memory_speed * d.memory_reached);
    slowest.gap = std::max(slowest.gap, d.gap);
  }
  return slowest;
}

bool takes_alike(const Degrees& grid) { return grid.shares == AxisShares{}; }

Machine of_rank(Machine machine, int rank) {
  machine.devices = {machine.devices[std::size_t(rank)]};
  return machine;
}

// The costs of a rank, for the whole transformer. Where all ranks take alike, the first has the
// largest share; it is then as slow as the slowest.
class Step {
 public:
  Step(const PlanJob& job, const Degrees& grid, const Machine& machine, int rank)
      : job_(job),
        grid_(grid),
        machine_(machine),
        rank_(rank),
        share_(share_of_step(job, grid, rank)),
        traffic_(traffic_by_kind(job, grid, rank)),
        writes_codes_(multiplies_float8(machine, job)),
        quantizes_tokens_(runs_int8_products(job) || writes_codes_),
        pace_(takes_alike(grid) ? pace_of(machine, job) : pace_of(of_rank(machine, rank), job)) {}

  double compute() const { return evaluations() * (products() + attention()); }
  double following() const;  // seconds of ControlNets, for one picture
  double memory() const;
  double gaps() const { return kernels() * pace_.gap; }
  // Seconds that the host needs to start all kernels.
  double host_calls() const { return pace_.gap > 0 ? kernels() * kHostCall : 0; }
  std::vector<std::pair<std::string, double>> communication() const;
  double handover(double items) const;      // of one item of a step, from stage to stage
  double copies(const Stage& stage) const;  // of offloaded weights, for one item

 private:
  double evaluations() const { return double(share_.branches * share_.batch); }
  std::int64_t num_blocks() const { return DenoiserShape::num_blocks(blocks_); }
  double attended_width() const {
    return double(share_.attended_heads.q.count * job_.shape().head_width);
  }
  double hidden() const { return double(job_.shape().hidden); }
  bool sums_natively() const { return job_.layout.collectives == Collectives::kNative; }
  double element_bytes() const { return double(job_.element_bytes()); }
  using Blocks = std::vector<BlockCost>;
  // Seconds and bytes for one picture.
  double dense(const Blocks& blocks, const TokenCounts& tokens) const;
  double products() const { return dense(blocks_, share_.own_tokens); }
  double attention() const { return attention(blocks_, share_.query_tokens, all_keys(job_)); }
  double attention(const Blocks& blocks, const TokenCounts& queries, const TokenCounts& keys) const;
  double activations(const Blocks& blocks, const TokenCounts& tokens) const;
  double merges() const;
  double sums() const;
  double packing() const;
  double kernels(const Blocks& blocks) const;
  double kernels() const;
  double weights(const Part& part) const;
  double weights_of_denoiser() const;  // per evaluation
  double tensor_parallel() const;
  double ulysses(const Traffic& t) const;
  double shift(const Traffic& ring) const;
  double seconds_along(const std::string& axis, const Traffic& t) const;
  double gather(const Traffic& t, int ranks, const LinkSpec& link) const;
  const LinkSpec& link_along(int stride, int ranks) const;
  const LinkSpec& link_along(int Degrees::*degree) const {
    return link_along(stride_along(grid_, degree), grid_.*degree);
  }

  const PlanJob& job_;
  const Degrees& grid_;
  const Machine& machine_;
  int rank_;
  const Blocks blocks_ = job_.shape().blocks_of_step();
  StepShare share_;
  StepTraffic traffic_;
  bool writes_codes_, quantizes_tokens_;
  Pace pace_;
};

double Step::dense(const Blocks& blocks, const TokenCounts& tokens) const {
  double flops = 0;
  for (const auto& kind : blocks)
    flops += double(kind.count) * (kind.dense_flops * double(tokens.of(kind)) +
                                   kind.text_flops * double(tokens.crossed));
  return flops * double(share_.heads) / double(job_.shape().num_heads) / pace_.products;
}

double Step::attention(const Blocks& blocks, const TokenCounts& queries,
                       const TokenCounts& keys) const {
  double pairs = 0;  // of queries and keys
  for (const auto& kind : blocks)
    pairs += double(kind.count) * double(queries.of(kind)) * double(keys.of(kind) + keys.crossed);
  return 4 * pairs * attended_width() / pace_.attention;
}

double Step::activations(const Blocks& blocks, const TokenCounts& tokens) const {
  const auto mine = [&](const Widths& widths) {
    return widths.of_heads(share_.heads, job_.shape().num_heads);
  };
  const double e = element_bytes();
  double bytes = 0;
  for (const auto& kind : blocks) {
    double of_token = mine(kind.traffic_elements) * e;
    if (job_.memory.quantize != Quantize::kNone) of_token += mine(kind.activated) * e;
    if (quantizes_tokens_) of_token += mine(kind.inputs) * (e + 1);
    // written as codes instead of as numbers, and not read again
    if (writes_codes_) of_token -= mine(kind.coded) * 2 * e;
    bytes += double(kind.count) * of_token * double(tokens.of(kind));
  }
  return bytes;
}

// Merges of a ring's partial results, in float32, one per hop.
double Step::merges() const {
  if (grid_.ring == 1 || job_.layout.ring_form != RingForm::kShift) return 0;
  return 20.0 * grid_.ring * double(num_blocks()) * double(share_.query_tokens.all()) *
         attended_width() * element_bytes();
}

// Sums of tensor parallel ranks, one share on each: its part of every rank, and of the residual
// where the sum is gated, is read, and the result is written (ops::add_parts). Gated residuals of
// their own are then left out. Of native sums every rank reads and writes all.
double Step::sums() const {
  if (grid_.tp == 1) return 0;
  const double parts = sums_natively() ? 1 : grid_.tp, part = 1 / parts;
  double gated = 0;
  for (const auto& kind : blocks_)
    gated += double(kind.count) * double(share_.own_tokens.of(kind)) *
             (kind.gated_sums * hidden() * part - kind.gated_elements);
  return (parts + 1) * part * double(traffic_.reduces.bytes) +
         evaluations() * gated * element_bytes();
}

// What parallel/ulysses.cc copies: q, k and v by receiving rank, the result by head, and what a
// rank keeps of both once more.
double Step::packing() const {
  if (grid_.ulysses == 1) return 0;
  return (8 + 8.0 / grid_.ulysses) * double(num_blocks()) * double(share_.own_tokens.all()) *
         double(share_.heads * job_.shape().head_width) * element_bytes();
}

double Step::kernels(const Blocks& blocks) const {
  double count = 0;
  for (const auto& kind : blocks) {
    double of_block = kind.kernels;
    if (quantizes_tokens_) of_block += kind.layers;
    if (writes_codes_) of_block -= kind.coded_layers;
    if (job_.memory.quantize != Quantize::kNone) of_block += kind.activating_kernels;
    // two exchanges and a sum, or one of each side; a native sum is one exchange
    const int exchanges = sums_natively() ? 1 : 2, sums = kind.has_sides ? 2 : 1;
    if (grid_.tp > 1) of_block += kind.all_reduces * (exchanges + sums) - kind.gated_kernels;
    if (grid_.ulysses > 1) of_block += 2 + kUlyssesCopies;
    if (grid_.ring > 1) of_block += 8 * grid_.ring;
    count += double(kind.count) * of_block;
  }
  return count;
}

// Counts those of one rank; a batch is evaluated at once, unless it passes through stages.
double Step::kernels() const {
  const double times = double(share_.branches) * double(items_of_batch(job_, grid_));
  return times * (kernels(blocks_) + kGapsOfEnd * kEndKernels);
}

// Bytes.
double Step::weights(const Part& part) const {
  return double(job_.figures->read_bytes(
      job_.tensors->of(part), {.tp = grid_.of_tp(), .tp_rank = place_of(grid_, rank_).tp},
      job_.memory.quantize));
}

double Step::weights_of_denoiser() const {
  const auto denoisers = job_.family->denoisers();
  return per_evaluation(job_, [&](std::size_t i) { return weights(*denoisers[i]); });
}

double Step::memory() const {
  const double ends = kEndMoves * double(share_.own_tokens.all()) * hidden() * element_bytes();
  const double of_one = activations(blocks_, share_.own_tokens) + merges() + packing() + ends;
  const double moved = evaluations() * of_one + sums();
  const double read = double(share_.branches) * weights_of_denoiser() / pace_.memory_speed;
  return moved / pace_.memory_speed + std::max(0.0, read - evaluations() * products());
}

// ControlNets see the noise and the prompt, once for all branches.
double Step::following() const {
  const auto without_references = [](TokenCounts counts) {
    counts.references = 0;
    return counts;
  };
  const auto tokens = without_references(share_.own_tokens);
  double seconds = 0;
  for (const auto* net : job_.family->parts(Part::Role::kControl)) {
    const auto bytes = weights(*net) / double(share_.batch) + activations(net->costs, tokens);
    seconds += dense(net->costs, tokens) + kernels(net->costs) * pace_.gap +
               attention(net->costs, without_references(share_.query_tokens),
                         without_references(all_keys(job_))) +
               bytes / pace_.memory_speed;
  }
  return seconds;
}

const LinkSpec& Step::link_along(int stride, int ranks) const {
  const bool crosses = a_group_crosses(machine_.devices_per_host, grid_, stride, ranks);
  return crosses ? machine_.network : machine_.link;
}

double Step::gather(const Traffic& t, int ranks, const LinkSpec& link) const {
  return double(t.all_gathers) * link.latency * std::ceil(std::log2(ranks)) +
         double(t.bytes) * (ranks - 1) / link.speed;
}

// The part of the hops not hidden by the current block's attention.
double Step::shift(const Traffic& ring) const {
  const auto& link = link_along(&Degrees::ring);
  if (job_.layout.ring_form == RingForm::kGather) return gather(ring, grid_.ring, link);
  const double hops = double(ring.shifts);
  const double hop = link.latency + double(ring.bytes) / hops / link.speed;
  const double attended = double(share_.batch) * attention() / double(num_blocks()) / grid_.ring;
  return hops * std::max(link.latency, hop - attended);
}

double Step::handover(double items) const {
  const auto& link = link_along(&Degrees::pp);
  const double vectors =
      evaluations() / items * double(share_.own_tokens.all() + job_.shape().state_vectors);
  return link.latency + vectors * hidden() * element_bytes() / link.speed;
}

double Step::copies(const Stage& stage) const {
  const auto& o = job_.memory.offload;
  if (o.transformer == OffloadMode::kNone || o.transformer == OffloadMode::kModel) return 0;
  const auto pages = pages_of_denoisers(job_, {.tp = grid_.of_tp(),
                                               .tp_rank = place_of(grid_, rank_).tp,
                                               .begin = stage.first_block,
                                               .count = stage.num_blocks});
  double speed = INFINITY;
  for (const auto& device : machine_.devices) speed = std::min(speed, host_speed(device));
  if (!o.folder.empty()) speed = kDiskSpeed / std::min(machine_.devices_per_host, grid_.product());
  const SlotUse slots(pages.all, o);
  const auto copied = [&](std::size_t i) {
    return double(slots.copied(PageUse::kRepeated, pages.groups[i]).bytes);
  };
  return per_evaluation(job_, copied) / speed;
}

double Step::tensor_parallel() const {
  const auto& link = link_along(&Degrees::tp);
  const auto& [reduces, gathers, others] = traffic_;
  const double n = grid_.tp;
  return double(reduces.all_reduces) * link.latency * std::ceil(std::log2(n)) +
         2 * (n - 1) / n * double(reduces.bytes) / link.speed + gather(gathers, grid_.tp, link);
}

double Step::ulysses(const Traffic& t) const {
  const auto& link = link_along(&Degrees::ulysses);
  const double n = grid_.ulysses;
  return double(t.all_to_alls) * link.latency + (n - 1) / n * double(t.bytes) / link.speed;
}

double Step::seconds_along(const std::string& axis, const Traffic& t) const {
  if (axis == "ulysses") return ulysses(t);
  if (axis == "ring") return shift(t);
  if (axis == "cfg") return gather(t, grid_.cfg, link_along(&Degrees::cfg));
  if (axis == "context") {
    const int ranks = grid_.ring * grid_.ulysses;
    return gather(t, ranks, link_along(stride_along(grid_, &Degrees::ulysses), ranks));
  }
  return link_along(1, grid_.product()).latency * std::ceil(std::log2(grid_.product()));
}

std::vector<std::pair<std::string, double>> Step::communication() const {
  std::vector<std::pair<std::string, double>> seconds;
  if (grid_.tp > 1) seconds.emplace_back("tp", tensor_parallel());
  for (const auto& [axis, traffic] : traffic_.others)
    if (traffic != Traffic{} && axis != "pp")
      seconds.emplace_back(axis, seconds_along(axis, traffic));
  return seconds;
}

// How much longer work of `busy` seconds takes with these copies.
double exposed(const PlanJob& job, double copies, double busy) {
  const auto& o = job.memory.offload;
  const bool waits = o.transformer == OffloadMode::kSequential || o.prefetch == 0;
  return waits ? copies : std::max(0.0, copies - busy);
}

// The busiest stage's fraction of all blocks' work.
double largest_part(const PlanJob& job, const std::vector<Stage>& stages) {
  const auto& busiest = std::ranges::max(stages, {}, &Stage::num_blocks);
  return double(busiest.num_blocks) / double(job.shape().num_blocks());
}

StepTime time_of_rank(const PlanJob& job, const Degrees& grid, const Machine& machine,
                      const std::vector<Stage>& stages, int rank) {
  const Step step(job, grid, machine, rank);
  StepTime time{.compute = step.compute(), .memory = step.memory(), .gaps = step.gaps()};
  if (!job.records_steps())
    time.gaps = std::max(time.gaps, step.host_calls() - time.compute - time.memory);
  time.communication = step.communication();
  // Stages of pipeline parallelism share out the pictures, and wait for each other.
  const double following = step.following() * std::ceil(double(job.batch_size) / double(grid.pp));
  if (grid.pp == 1) {
    time.compute += following;
    const double copies = double(job.branches / grid.cfg) * step.copies(stages.front());
    time.copies = exposed(job, copies, time.total());
    return time;
  }
  const auto& stage_of_rank = stages[std::size_t(place_of(grid, rank).pp)];
  // Stages work on a step's items in lockstep: n + P - 1 ticks, each as long as the busiest stage
  // takes for an item. A stage works for 1/P of the whole on average, or for its unequal part.
  const double whole = time.total();
  const double items = double(job.branches / grid.cfg * items_of_batch(job, grid));
  const double largest = largest_part(job, takes_alike(grid) ? stages : std::vector{stage_of_rank});
  const double part = takes_alike(grid) ? 1.0 / grid.pp : largest;
  const double tick = whole / items * largest;
  time.compute = time.compute * part + following;
  time.memory *= part;
  time.gaps *= part;
  for (auto& [axis, seconds] : time.communication) seconds *= part;
  const double ticks = items + grid.pp - 1;
  time.bubbles = ticks * tick - whole * part;
  time.communication.emplace_back("pp", ticks * step.handover(items));
  double longest = 0;
  for (const auto& stage : stages) longest = std::max(longest, step.copies(stage));
  time.copies = ticks * exposed(job, longest, tick);
  return time;
}

}  // namespace

StepTime predict_time(const PlanJob& job, const Degrees& grid, const Machine& machine,
                      const std::vector<Stage>& stages) {
  if (takes_alike(grid)) return time_of_rank(job, grid, machine, stages, 0);
  StepTime longest;
  for (int rank = 0; rank < grid.product(); ++rank) {
    const auto mine = job_of_rank(job, grid, rank);
    if (mine.batch_size == 0) continue;  // it waits for the others
    auto time = time_of_rank(mine, grid, machine, stages, rank);
    if (time.total() > longest.total()) longest = std::move(time);
  }
  return longest;
}

}  // namespace braid

#include "models/flux3/model.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

std::string mode_name(Flux3Mode mode) {
  if (mode == Flux3Mode::kText) return "text";
  return mode == Flux3Mode::kImage ? "image" : "references";
}

// The table of the tokens [begin, begin + count).
Rope cut(const Rope& all, std::int64_t begin, std::int64_t count) {
  return {.cos = all.cos.narrow(0, begin, count), .sin = all.sin.narrow(0, begin, count)};
}

}  // namespace

Flux3::Flux3(const Flux3Config& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_blocks())),
      attend_(std::move(attend)),
      inputs_(load_end<Flux3Inputs>(w, place_if(run_.has_first()), c)),
      image_blocks_(w / "content_mode_blocks" / "image", run_.of_kind(0, c.num_mode), c),
      text_blocks_(w / "txt_mode_blocks", run_.of_kind(c.num_mode, c.num_mode), c),
      reference_blocks_(w / "content_mode_blocks" / "image_cond",
                        run_.of_kind(2 * c.num_mode, c.num_mode), c),
      single_blocks_(w / "single_blocks", run_.of_kind(3 * c.num_mode, c.num_single), c),
      output_(load_end<Flux3Output>(w, place_if(run_.has_last()), c)) {
  w.finish();
}

void Flux3::run_mode(Flux3Mode mode, Flux3Tokens& tokens, const Flux3Modulations& m,
                     const Rope& rope, const Watch& watch) const {
  if (!tokens.has(mode)) return;
  const auto& blocks = mode == Flux3Mode::kText    ? text_blocks_
                       : mode == Flux3Mode::kImage ? image_blocks_
                                                   : reference_blocks_;
  blocks.for_each([&](std::int64_t i, const Flux3Block& block) {
    auto& x = tokens.of(mode);
    x = block({{x, m.early(mode)}}, rope, attend_).front();
    if (watch) watch("mode_blocks." + std::to_string(i) + " " + mode_name(mode), x);
  });
}

void Flux3::run_single(Flux3Tokens& tokens, const Flux3Modulations& m, const Rope& rope,
                       const Watch& watch) const {
  single_blocks_.for_each([&](std::int64_t i, const Flux3Block& block) {
    std::vector<ModulatedRun> runs;
    for (const auto mode : kFlux3Modes)
      if (tokens.has(mode)) runs.push_back({tokens.of(mode), m.single(mode)});
    const auto made = block(runs, rope, attend_);
    auto next = made.begin();
    for (const auto mode : kFlux3Modes) {
      if (!tokens.has(mode)) continue;
      tokens.of(mode) = *next++;
      if (watch)
        watch("single_blocks." + std::to_string(i) + " " + mode_name(mode), tokens.of(mode));
    }
  });
}

Tensor Flux3::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto counts = Flux3Tokens::counts(in);
  auto tokens = inputs_ ? inputs_->tokens(in) : Flux3Tokens(state, counts);
  if (inputs_ && in.watch)
    for (const auto mode : kFlux3Modes)
      if (tokens.has(mode)) in.watch(mode_name(mode) + "_in", tokens.of(mode));
  if (num_modulations() == 0) return tokens.pack();
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  const Flux3Modulations m(
      Modulations(in.modulations_BM).take(num_modulations()).unflatten(-1, {kFlux3Vectors, -1}));
  const auto [num_text, num_image, num_references] = counts;
  run_mode(Flux3Mode::kImage, tokens, m, cut(rope, num_text, num_image), in.watch);
  run_mode(Flux3Mode::kText, tokens, m, cut(rope, 0, num_text), in.watch);
  run_mode(Flux3Mode::kReferences, tokens, m, cut(rope, num_text + num_image, num_references),
           in.watch);
  if (!single_blocks_.empty()) run_single(tokens, m, rope, in.watch);
  return output_ ? (*output_)(tokens.of(Flux3Mode::kImage), m.last()) : tokens.pack();
}

std::vector<Tensor> Flux3::modulations(const std::vector<Tensor>& conditions_SM,
                                       const std::function<void()>& before_layer) const {
  ModulationsMade made(conditions_SM, num_modulations(), before_layer);
  if (num_modulations() > 0) made.add([](const Tensor& condition_SM) { return condition_SM; });
  return std::move(made).take();
}

std::int64_t Flux3::num_modulations() const {
  return run_.count == 0 && !output_ ? 0 : kFlux3Vectors * config_.hidden();
}

}  // namespace braid

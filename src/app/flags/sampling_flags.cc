#include "app/flags/flag_groups.h"

#include "app/flags/flag_values.h"

namespace braid {
namespace {

template <class Value, std::size_t kSize>
Choices<Value> choices_of(const std::array<std::pair<std::string_view, Value>, kSize>& table) {
  Choices<Value> choices;
  for (const auto& [name, value] : table) choices.emplace_back(name, value);
  return choices;
}

}  // namespace

void add_sampling_flags(FlagReader& read, Sampling& s) {
  read.text("--sampler", "NAME", "Picture",
            "euler, euler_ancestral, heun, dpm_2, dpmpp_2m, res_multistep,\n"
            "er_sde or lcm; heun and dpm_2 take twice as long. Default: the\n"
            "model's, usually euler",
            into(s.sampler, one_of(choices_of(kSamplers))));
  read.text("--schedule", "NAME", "Picture",
            "Noise levels: model, as its scheduler says; or ComfyUI's simple,\n"
            "beta, karras or exponential. Default: model",
            into(s.schedule, one_of(choices_of(kSigmaSchedules))));
  read.text("--sigmas", "LIST", "Picture",
            "Noise levels, one per step and falling, used as they are:\n"
            "1,0.75,0.5,0.25",
            into(s.sigmas, number_list));
  read.text("--base-sigmas", "LIST", "Picture",
            "The same, but they pass through the model's shift, as diffusers'\n"
            "sigmas",
            into(s.base_sigmas, number_list));
  read.text("--shift", "K", "Picture",
            "A static shift of the noise levels instead of the model's:\n"
            "k t / (1 + (k - 1) t)",
            into(s.shift, finite_number));
}

}  // namespace braid

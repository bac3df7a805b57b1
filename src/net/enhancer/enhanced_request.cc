#include "net/enhancer/enhanced_request.h"

#include "net/enhancer/enhanced_size.h"

namespace braid::net {

PlainPrompt plain_prompt(const Request& request, std::size_t index) {
  PlainPrompt plain{.text = request.prompts.at(index), .boxes = request.boxes};
  for (const auto& reference : request.pictures.references) plain.pictures.push_back(&reference);
  if (request.pictures.init) plain.pictures.push_back(&*request.pictures.init);
  return plain;
}

Request with_enhanced(Request request, std::size_t index, const EnhancedPrompt& enhanced,
                      const ModelInfo& info) {
  const bool has_size = request.width || request.height || request.pictures.init;
  if (request.prompts.size() == 1 && !has_size) {
    std::vector<WidthHeight> pictures;
    for (const auto* const picture : plain_prompt(request, index).pictures)
      pictures.push_back({picture->width, picture->height});
    const auto size =
        enhanced_size(enhanced, {info.width, info.height}, info.size_multiple, pictures);
    if (size) request.width = size->width;
    if (size) request.height = size->height;
  }
  request.prompts.at(index) = enhanced.prompt;
  if (!enhanced.boxes.empty()) request.boxes = enhanced.boxes;
  return request;
}

}  // namespace braid::net

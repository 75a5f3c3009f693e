// Reads XML far enough to say whether it is well-formed, and which elements and texts are in it.
#pragma once

#include <cctype>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace starling::tool {

struct Xml {
  std::string fault;                  // empty: well-formed
  std::map<std::string, int> counts;  // of elements, by name
  std::vector<std::string> texts;     // of <text>, as written
};

inline bool is_text(const std::string& text) {
  static const std::regex stray("&(?!(amp|lt|gt|quot|apos);)");
  return text.find('<') == std::string::npos && !std::regex_search(text, stray);
}

// No comments, no CDATA: they are not written here.
inline Xml read_xml(const std::string& source) {
  static const std::regex declaration(R"(^<\?xml version="1.0" encoding="UTF-8"\?>\n)");
  static const std::regex element(R"re(^<([A-Za-z]+)((\s+[A-Za-z:-]+="[^"<]*")*)\s*(/?)>)re");
  static const std::regex end(R"(^</([A-Za-z]+)>)");
  Xml xml;
  std::vector<std::string> open;
  std::smatch match;
  std::string rest = source;
  if (!std::regex_search(rest, match, declaration)) {
    xml.fault = "no declaration";
    return xml;
  }
  rest = match.suffix();
  while (!rest.empty()) {
    const std::size_t next = std::min(rest.find('<'), rest.size());
    const std::string text = rest.substr(0, next);
    const bool is_blank = text.find_first_not_of(" \n") == std::string::npos;
    if (!is_text(text) || (open.empty() && !is_blank)) {
      xml.fault = "stray text: " + text;
      return xml;
    }
    if (!open.empty() && open.back() == "text") {
      xml.texts.push_back(text);
    }
    rest.erase(0, next);
    if (rest.empty()) {
      break;
    }
    if (std::regex_search(rest, match, element)) {
      ++xml.counts[match[1]];
      if (!is_text(match[2])) {
        xml.fault = "attributes: " + match.str();
        return xml;
      }
      if (match[4].length() == 0) {
        open.push_back(match[1]);
      }
    } else if (std::regex_search(rest, match, end) && !open.empty() && open.back() == match[1]) {
      open.pop_back();
    } else {
      xml.fault = "at " + rest.substr(0, 80);
      return xml;
    }
    rest = match.suffix();
  }
  if (!open.empty()) {
    xml.fault = open.back() + " is not closed";
  }
  return xml;
}

}  // namespace starling::tool

# The calls of R's pxweb: levels, a table's variables, limits, and queries, each as its own data.
# Rscript protocol_1.R ADDRESS writes what it found as JSON.
library(httr)
library(jsonlite)

root <- commandArgs(trailingOnly = TRUE)[1]

get_json <- function(path) {
  answer <- GET(paste0(root, path), user_agent("pxweb/0.17"))
  stop_for_status(answer)
  fromJSON(content(answer, "text", encoding = "UTF-8"), simplifyVector = FALSE)
}

# As pxweb does, the query is sent as a text: httr says that it is a form.
post_query <- function(path, query, format) {
  parts <- lapply(names(query), function(code) {
    list(code = unbox(code), selection = query[[code]])
  })
  body <- toJSON(list(query = parts, response = list(format = unbox(format))))
  POST(paste0(root, path), body = body, user_agent("pxweb/0.17"))
}

item <- function(...) list(filter = unbox("item"), values = c(...))
all_of <- function(pattern) list(filter = unbox("all"), values = pattern)

text_of <- function(answer) content(answer, "text", encoding = "UTF-8")

# pxweb's as.data.frame: a row for each key, codes replaced by texts.
as_frame <- function(found) {
  kinds <- vapply(found$columns, function(column) column$type, "")
  codes <- vapply(found$columns, function(column) column$code, "")
  keys <- do.call(rbind, lapply(found$data, function(row) unlist(row$key)))
  values <- do.call(rbind, lapply(found$data, function(row) unlist(row$values)))
  frame <- cbind(as.data.frame(keys), as.data.frame(values))
  names(frame) <- c(codes[kinds != "c"], codes[kinds == "c"])
  frame$count <- suppressWarnings(as.numeric(frame$count))
  frame
}

databases <- get_json("/")
tables <- get_json(paste0("/", databases[[1]]$id, "/"))
path <- paste0("/", databases[[1]]$id, "/", tables[[1]]$id)
table <- get_json(path)
limits <- get_json("/?config")

query <- list(region = all_of("*"), sex = item("F", "M"), Tid = list(filter = unbox("top"), values = "1"))
json <- as_frame(fromJSON(text_of(post_query(path, query, "json")), simplifyVector = FALSE))
stat <- fromJSON(text_of(post_query(path, query, "json-stat")), simplifyVector = FALSE)$dataset
csv <- read.csv(text = text_of(post_query(path, query, "csv")), check.names = FALSE)
county <- list(filter = unbox("agg:agg_once_region_county"), values = "N1")
level <- as_frame(fromJSON(text_of(post_query(path, list(region = county), "json")),
                           simplifyVector = FALSE))
wrong <- post_query(path, list(region = item("nowhere")), "json")

cat(toJSON(list(
  levels = list(databases, tables), title = table$title,
  variables = vapply(table$variables, function(v) v$code, ""),
  time = vapply(table$variables, function(v) v$time, TRUE),
  limits = limits, json = json, stat = unlist(stat$value), size = unlist(stat$dimension$size),
  csv = csv, level = level, status = status_code(wrong),
  error = content(wrong, as = "parsed", type = "application/json")$error
), auto_unbox = TRUE, na = "null"))

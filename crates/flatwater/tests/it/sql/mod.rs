//! Texts: which statements and PRAGMAs are taken, what is learnt of them, and what they answer.

mod asking_pragmas;
mod attached_pragmas;
mod batches_of_texts;
mod double_quoted_strings;
mod dumps;
mod dynamic_sql;
mod earlier_statements;
mod learning;
mod one_off_texts;
mod optimizing;
mod pragma_functions;
mod prepared;
mod schema;
mod state;
mod statements;
mod values_in_plans;
mod virtual_tables;
